"""The contenders: how to start each one, and how to read its rows."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import ADLOOM
from benchmarks.peers.inputs import AND_LATER, DEALT, EVENTS
from infra.environments import python_of
from spark_jobs.config.choices import StateStore
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS, Table
from tests.support.lakes import live_files

_HERE = Path(__file__).parent
_STORES = {StateStore.ROCKSDB: "state in RocksDB", StateStore.MEMORY: "state in memory"}


@dataclass(frozen=True)
class Contender:
    """A program that does the work.

    Attributes:
        name: its name in reports.
        command: the command line, given the input folder, the output folder and the number of cores.
        attributions: given the output folder, DuckDB SQL that selects ``status``, ``impression_id``, ``click_id``,
            ``cost_micros``.
        sessions: the same for ``user_id``, ``session_start``, ``session_end`` (times) and ``event_count``.
        reads: which input folder it reads, see ``benchmarks/peers/inputs.py``.
        is_batch: it cannot continue with new data tomorrow, so it is an upper bound and not a peer.
    """

    name: str
    command: Callable[[Path, Path, int], list[str]]
    attributions: Callable[[Path], str]
    sessions: Callable[[Path], str]
    reads: str = EVENTS
    is_batch: bool = False


def _ours(store: StateStore) -> Contender:
    program = ["env", f"ADLOOM_SPARK__STATE_STORE={store.value}", *ADLOOM, "run", "--drain", "--no-measure"]
    return Contender(
        f"adloom, {_STORES[store]}",
        lambda source, out, _: [*program, "--source", str(source), "--lake", str(out)],
        _delta(ATTRIBUTIONS),
        _delta(SESSIONS),
    )


def _delta(table: Table) -> Callable[[Path], str]:
    def files(out: Path) -> str:
        folder = out / table.path
        listed = ", ".join(f"'{folder / name}'" for name in live_files(folder))
        return f"read_parquet([{listed}], hive_partitioning = false)"

    return files


def _parquet(table: str, more: str) -> Callable[[Path], str]:
    return lambda out: f"read_parquet('{out}/{table}{more}')"


def _flink(store: StateStore) -> Contender:
    backend = {StateStore.ROCKSDB: "rocksdb", StateStore.MEMORY: "hashmap"}[store]
    columns = (
        "{'status': 'VARCHAR', 'impression_id': 'VARCHAR', 'impression_time': 'VARCHAR', 'campaign_id': 'VARCHAR', "
        "'ad_id': 'VARCHAR', 'user_id': 'VARCHAR', 'cost_micros': 'BIGINT', 'click_id': 'VARCHAR', "
        "'click_time': 'VARCHAR'}"
    )
    return Contender(
        f"PyFlink, {_STORES[store]}",
        lambda source, out, cores: [
            python_of("flink"),
            str(_HERE / "flink.py"),
            str(source),
            str(out),
            backend,
            str(cores),
        ],
        lambda out: f"read_csv('{out}/attributions/part-*', header = false, columns = {columns})",
        lambda out: (
            f"(SELECT user_id, session_start::TIMESTAMPTZ AS session_start, session_end::TIMESTAMPTZ AS session_end, "
            f"event_count FROM read_json('{out}/sessions/part-*', format = 'newline_delimited'))"
        ),
        reads=DEALT,
    )


def _guide(name: str, *, partitions: int) -> Contender:
    program = [sys.executable, str(_HERE / "spark_guide.py")]
    return Contender(
        name,
        lambda source, out, cores: [*program, str(source), str(out), str(cores), str(partitions)],
        _parquet("attributions", "/*.parquet"),
        _parquet("sessions", "/*.parquet"),
        reads=AND_LATER,
    )


CONTENDERS = (
    _ours(StateStore.ROCKSDB),
    _flink(StateStore.ROCKSDB),
    _ours(StateStore.MEMORY),
    _flink(StateStore.MEMORY),
    _guide("PySpark as its guide", partitions=200),  # Spark's default
    _guide("PySpark as its guide, 2 partitions", partitions=2),
    Contender(
        "Pathway, static mode",
        lambda source, out, cores: [
            "env",
            f"PATHWAY_THREADS={cores}",
            python_of("pathway"),
            str(_HERE / "pathway_static.py"),
            str(source),
            str(out),
        ],
        lambda out: f"read_json('{out}/attributions.jsonl')",
        lambda out: (
            f"(SELECT user_id, make_timestamptz(start_ms * 1000) AS session_start, "
            f"make_timestamptz(end_ms * 1000) AS session_end, event_count FROM read_json('{out}/sessions.jsonl'))"
        ),
    ),
    Contender(
        "DuckDB, one batch",
        lambda source, out, _: [sys.executable, "-m", "benchmarks.duckdb_batch", str(source), str(out)],
        _parquet("attributions", ".parquet"),
        _parquet("sessions", ".parquet"),
        is_batch=True,
    ),
    Contender(
        "Polars, one batch",
        lambda source, out, _: [python_of("polars"), str(_HERE / "polars_batch.py"), str(source), str(out)],
        _parquet("attributions", ".parquet"),
        _parquet("sessions", ".parquet"),
        is_batch=True,
    ),
)
"""All contenders, in the order in which they take turns."""
