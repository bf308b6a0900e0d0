"""Where a step is worked out: tables in memory, a tally of rows by kind, and the files that the next step needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.config.durations import microseconds
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.model import LEDGERS, Figure, RecordKind

_MACROS = """
-- 63 bits: with 100 million events in memory, one lookup in 100 billion finds a stranger.
CREATE MACRO key_of(kind, id) AS (md5_number(kind || ':' || id) & 9223372036854775807::UHUGEINT)::BIGINT;
CREATE MACRO hour_of(us) AS us // 3600000000;
-- Of two records of one id, as in spark_jobs.queries.identity. Older files lack some times.
CREATE MACRO are_near(one_us, other_us) AS {};
"""
_MEMORY = "2GB"
"""The rest goes to a temporary folder: the jobs on the same machine need their memory."""
_CUBE = "account VARCHAR, kind VARCHAR, verdict VARCHAR, hour BIGINT, source VARCHAR, rows BIGINT"


class LedgerDatabase:
    """A DuckDB in memory, with the tally.

    ``tally`` has columns ``account``, ``kind``, ``verdict``, ``hour`` (hours of event time since 1970; null
    without one), ``source`` (null: unknown) and ``rows``. At the start it has what was counted before. ``state`` has
    the same columns, for what each step counts again.

    Args:
        lake: the lake.
        number: of the state that it makes.
        delay: how far apart two records of one id may lie to be the same event; None: at any distance.
    """

    def __init__(self, lake: Lake, number: int, delay: timedelta | None) -> None:
        self._lake = lake
        self._folder = f"{LEDGERS}/{number}-{uuid4().hex[:12]}"
        self.sql = duckdb.connect()
        self.sql.execute("SET threads = 1")  # the other cores are the jobs'
        self._spill = TemporaryDirectory(prefix="adloom-ledger-")
        self.sql.execute(f"SET memory_limit = '{_MEMORY}'")
        self.sql.execute(f"SET temp_directory = '{self._spill.name}'")
        are_near = "true" if delay is None else f"coalesce(abs(one_us - other_us) <= {microseconds(delay)}, true)"
        self.sql.execute(_MACROS.format(are_near))
        for name in ("tally", "state"):
            self.sql.execute(f"CREATE TABLE {name} ({_CUBE})")

    def close(self) -> None:
        """Forgets everything."""
        self.sql.close()
        self._spill.cleanup()

    def run(self, sql: str, **parameters: Any) -> duckdb.DuckDBPyConnection:
        """Runs a statement."""
        return self.sql.execute(sql, parameters or None)

    def one(self, sql: str, **parameters: Any) -> int:
        """The only value of a query, as a number; 0 for null."""
        (row,) = self.run(sql, **parameters).fetchall()
        return int(row[0] or 0)

    @contextmanager
    def seeing(self, **tables: pa.Table) -> Iterator[None]:
        """Lets statements see Arrow tables under the names of the arguments."""
        for name, table in tables.items():
            self.sql.register(name, table)
        try:
            yield
        finally:
            for name in tables:
                self.sql.unregister(name)

    def load(self, name: str, key: str | None, schema: str) -> None:
        """Creates the table ``name`` with the rows of the Parquet file ``key``; empty if that is None."""
        self.run(f"CREATE TABLE {name} ({schema})")
        if key is not None:
            self.fill(name, key)

    def fill(self, name: str, key: str) -> None:
        """Adds the rows of the Parquet file ``key`` to the table ``name``."""
        with self.seeing(stored=self.stored(key)):
            self.run(f"INSERT INTO {name} BY NAME FROM stored")

    def stored(self, key: str, columns: list[str] | None = None) -> pa.Table:
        """The rows of a file of the ledger.

        Raises:
            LakeError: the file is gone.
        """
        data = self._lake.files.read(key)
        if data is None:
            raise LakeError(f"{self._lake.shown(key)} is gone; `adloom ledger --restart` begins the ledger again")
        return pq.read_table(pa.BufferReader(data), columns=columns)

    def store(self, name: str, query: str) -> str:
        """Writes the rows of ``query`` to a Parquet file, and returns its key."""
        sink = pa.BufferOutputStream()
        # The hashes do not compress, and have no order.
        pq.write_table(
            self.sql.sql(query).to_arrow_table(), sink, compression="zstd", use_dictionary=["user", "source"]
        )
        key = f"{self._folder}/{name}.parquet"
        self._lake.files.write(key, sink.getvalue().to_pybytes())
        return key

    def count(self, account: str, kind: RecordKind, rows: str, *, source: str = "source", sign: int = 1) -> None:
        """Adds to the tally the number of ``rows`` (a query or table) by hour of ``event_us`` and by ``source``."""
        self.run(
            f"INSERT INTO tally SELECT '{account}', '{kind.value}', NULL, hour_of(event_us), {source}, "
            f"{sign} * count(*) FROM ({rows}) GROUP BY ALL"
        )

    def figures(self) -> tuple[Figure, ...]:
        """The sums of tally and state, by account and kind; of those in quarantine by verdict and source too."""
        sums = self.run(
            f"SELECT account, kind, verdict, CASE kind WHEN '{RecordKind.QUARANTINED.value}' THEN source END AS s, "
            "sum(rows)::BIGINT AS n FROM (FROM tally UNION ALL FROM state) GROUP BY ALL HAVING n <> 0 ORDER BY ALL"
        ).fetchall()
        return tuple(
            Figure(account=account, kind=RecordKind(kind), rows=rows, verdict=verdict, source=source)
            for account, kind, verdict, source, rows in sums
        )


def nearness(rows: str, others: str) -> str:
    """SQL of ``hash``, ``event_us`` and ``is_near``, of those of the table ``rows`` whose ids ``others`` has too.

    ``is_near``: whether one of ``others`` is the same event. Both tables have ``hash`` and ``event_us``.
    """
    return (
        "SELECT r.hash, r.event_us, bool_or(are_near(r.event_us, o.event_us)) AS is_near "
        f"FROM {rows} r JOIN {others} o USING (hash) GROUP BY ALL"
    )
