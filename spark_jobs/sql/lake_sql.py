"""SQL over one state of a lake, in DuckDB: its tables, and the views for people."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa

from spark_jobs.config.durations import UTC_ZONE
from spark_jobs.contract.tables import CREDIT_TABLES, DAYS, MARKS, NET_CREDIT_TABLES, REPAIR_TABLES, Table
from spark_jobs.errors import LakeError, SettingsError, SqlError
from spark_jobs.lake.as_of import AsOf, version_as_of
from spark_jobs.lake.layout import Lake, failing_rows_key
from spark_jobs.lake.table_rows import RowStore, table_rows
from spark_jobs.queries.registry import SHOWN_TABLES, VALIDATED_TABLES
from spark_jobs.sql.names import unknown
from spark_jobs.sql.views import VIEWS, failing
from spark_jobs.sql.zones import day_of

_TIMES = "TIMESTAMPFORMAT '%Y-%m-%dT%H:%M:%S.%fZ'"
CSV = f"FORMAT csv, HEADER, {_TIMES}"
JSON = f"FORMAT json, {_TIMES}"
PARQUET = "FORMAT parquet, COMPRESSION zstd"
"""How rows are written: options of DuckDB's COPY."""
_FAILING = f"{failing.VIEW.name}_"
_NESTED = ("list", "struct", "map", "array")
_UNKNOWN = re.compile(r"Table with name (\S+) does not exist")
_DATA_FILE = re.compile(r"part-\S+\.parquet")
_QUOTE = "'"
_NOW = AsOf()


class LakeSql:
    """A DuckDB that knows the tables of ``lake`` by name, and reads those that a statement uses.

    A table has the same version in all statements until :meth:`refresh`, also while jobs write to it. Times are in UTC.
    """

    def __init__(
        self, lake: Lake, store: RowStore, as_of: AsOf = _NOW, *, zone: str = UTC_ZONE, spill: Path | None = None
    ) -> None:
        """Reads nothing yet.

        Args:
            lake: the lake.
            store: where its data files are.
            as_of: the state of its tables.
            zone: the time zone of days, for the daily views.
            spill: takes what does not fit into memory; None: nothing does.
        """
        self.lake, self._store, self._as_of = lake, store, as_of
        self.versions: dict[str, int] = {}
        """By name, the versions of the tables that were used so far."""
        self._added: list[str] = []
        self._sql = duckdb.connect()
        self._sql.execute("SET TimeZone = 'UTC'")
        self._sql.execute(day_of(zone))
        # Only tables of the lake are meant by names, not variables of this program.
        self._sql.execute("SET python_enable_replacements = false")
        self._sql.execute("SET temp_directory = ?", [str(spill) if spill else ""])

    def close(self) -> None:
        """Forgets everything; nothing can be run any more."""
        self._sql.close()

    def run(self, text: str) -> duckdb.DuckDBPyRelation | None:
        """Runs the statements in ``text``; the rows of the last one are computed when they are asked for.

        Raises:
            SettingsError: there is no such table, or a version without a name was given for several.
            LakeError: the lake does not have the table yet, or not at that time.
            SqlError: the statement is wrong.
        """
        result = None
        with _explaining(self.lake):
            for statement in self._sql.extract_statements(text):
                result = self._run(statement.query)
        return result

    def refresh(self) -> None:
        """Forgets which versions were used: the next statement looks for them again."""
        for name in reversed(self._added):
            self._sql.execute(f'DROP VIEW "{name}"')
        self._added.clear()
        self.versions.clear()

    def fetch(self, rows: duckdb.DuckDBPyRelation, most: int) -> pa.Table:
        """The first ``most`` of ``rows``.

        Raises:
            LakeError: a data file cannot be read.
            SqlError: a row cannot be computed.
        """
        with _explaining(self.lake):
            return rows.limit(most).to_arrow_table()

    def write(self, rows: duckdb.DuckDBPyRelation, to: Path, options: str) -> int:
        """Writes ``rows`` to the file or folder ``to``, and says how many they are.

        Args:
            rows: what :meth:`run` gave.
            to: replaced if it exists.
            options: of DuckDB's COPY; they begin with :data:`CSV`, :data:`JSON` or :data:`PARQUET`.

        Raises:
            LakeError: a data file cannot be read.
            SqlError: ``to`` cannot be written.
        """
        name = f"rows_{uuid4().hex}"
        nested = [column for column, kind in zip(rows.columns, rows.types, strict=True) if kind.id in _NESTED]
        # A cell of CSV is text; JSON is what other programs read.
        as_json = ", ".join(f'to_json("{column}") AS "{column}"' for column in nested)
        chosen = f"SELECT * REPLACE ({as_json}) FROM {name}" if nested and options.startswith(CSV) else f"FROM {name}"
        with _explaining(self.lake):
            rows.create_view(name)
            place = str(to).replace(_QUOTE, _QUOTE * 2)
            ((count,),) = self._sql.execute(f"COPY ({chosen}) TO '{place}' ({options})").fetchall()
            self._sql.execute(f"DROP VIEW {name}")
        return int(count)

    def _run(self, statement: str) -> duckdb.DuckDBPyRelation | None:
        while True:
            try:
                return self._sql.sql(statement)
            except duckdb.CatalogException as error:
                name = _UNKNOWN.search(str(error))
                if name is None:
                    raise
                # It was found before anything was done, so the statement can run again.
                self._add(name[1].lower())

    def _add(self, name: str) -> None:
        if name in self._added:
            raise unknown(name)  # it is there, and DuckDB looks for it in another schema
        if view := VIEWS.get(name):
            self._run(f'CREATE VIEW "{name}" AS {view.sql or self._failing()}')
        elif table := SHOWN_TABLES.get(name) or _FAILING_TABLES.get(name):
            self._sql.register(name, table_rows(self.lake, table, self._version(table), self._store))
        else:
            raise unknown(name)
        self._added.append(name)

    def _version(self, table: Table) -> int:
        if self._as_of.version is not None and self.versions:
            (other,) = self.versions
            raise SettingsError(
                f"version {self._as_of.version} is one of {other}, and {table.name} has others; name the table of a "
                f"version, as in {other}={self._as_of.version}, or give a time"
            )
        version = version_as_of(self.lake, table, self._as_of)
        if version is None:
            raise LakeError(f"lake {self.lake.shown()} has no table {table.name} ({table.path}) yet; {_writer(table)}")
        self.versions[table.name] = version
        return version

    def _failing(self) -> str:
        found = [name for name, table in _FAILING_TABLES.items() if self.lake.is_table(table.path)]
        if not found:
            raise LakeError(f"no row of {self.lake.shown()} has failed validation; run `adloom validate` to check")
        return " UNION ALL ".join(_failing_rows(name, _FAILING_TABLES[name]) for name in found)


@contextmanager
def _explaining(lake: Lake) -> Iterator[None]:
    """Turns what DuckDB and Arrow raise, also while rows are fetched, into errors for people.

    Raises:
        LakeError: a data file cannot be read.
        SqlError: anything else.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # nobody reads the rows any more
    except (duckdb.Error, OSError) as error:
        text = str(error).strip()
        if _DATA_FILE.search(text):
            raise LakeError(
                f"a data file of {lake.shown()} cannot be read; was it vacuumed, or are its rows not for you? {text}"
            ) from error
        raise SqlError(text) from error


_FAILING_TABLES = {
    f"{_FAILING}{table.name}": Table(f"{_FAILING}{table.name}", failing_rows_key(table), table.meaning, table.columns)
    for table in VALIDATED_TABLES
}


def _failing_rows(name: str, table: Table) -> str:
    values = ", ".join(
        f"'{column.name}', strftime(\"{column.name}\", '%Y-%m-%dT%H:%M:%S.%fZ')"
        if column.sql_type == "TIMESTAMP"
        else f"'{column.name}', \"{column.name}\""
        for column in table.columns
    )
    of = name.removeprefix(_FAILING)
    return f"SELECT '{of}' AS \"table\", reasons, json_object({values}) AS row FROM {name}"


def _writer(table: Table) -> str:
    if table in REPAIR_TABLES:
        return "`adloom repair` writes it"
    if table in NET_CREDIT_TABLES:
        return "`adloom credit` writes it once `adloom marks update` has marked events"
    if table in CREDIT_TABLES:
        return "`adloom credit` writes it"
    command = {DAYS.name: "days", MARKS.name: "marks update"}.get(table.name)
    return f"`adloom {command}` writes it" if command else "run `adloom run` or its jobs first"
