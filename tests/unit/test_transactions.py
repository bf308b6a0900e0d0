"""The last number under which a writer has committed to a table, from its log alone."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.contract.tables import PATHS
from spark_jobs.lake.layout import commit_key
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.table_files import last_transaction


def test_it_is_found_in_commits_and_in_the_checkpoint_before_them(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    assert last_transaction(lake, PATHS, "credit") == 0
    marks = [{"txn": {"appId": "credit", "version": 7}}, {"txn": None}, {"txn": {"appId": "other", "version": 9}}]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(marks), sink)
    log = f"{PATHS.path}/_delta_log"
    lake.files.write(f"{log}/{3:020}.checkpoint.parquet", sink.getvalue())
    lake.files.write(f"{log}/_last_checkpoint", b'{"version":3,"size":1}')
    lake.files.write(commit_key(PATHS, 4), json.dumps({"add": {"path": "a"}}).encode())
    assert [last_transaction(lake, PATHS, writer) for writer in ("credit", "other", "nobody")] == [7, 9, 0]
    lake.files.write(commit_key(PATHS, 5), json.dumps({"txn": {"appId": "credit", "version": 8}}).encode())
    assert last_transaction(lake, PATHS, "credit") == 8
