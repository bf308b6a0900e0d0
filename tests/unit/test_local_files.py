"""The small files of a local lake."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spark_jobs.lake.store.local import LocalFiles


def test_a_file_is_created_once_whoever_is_first(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda number: files.create("folder/plan.json", str(number).encode()), range(50)))
    assert made.count(True) == 1
    assert files.read("folder/plan.json") == str(made.index(True)).encode()
    assert files.names("folder") == ["plan.json"]
