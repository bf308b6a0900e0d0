"""The small files of a local lake."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.lake.store.local import LocalFiles


def test_a_file_is_created_once_whoever_is_first(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda number: files.create("folder/plan.json", str(number).encode()), range(50)))
    assert made.count(True) == 1
    assert files.read("folder/plan.json") == str(made.index(True)).encode()
    assert files.names("folder") == ["plan.json"]


def test_a_folder_goes_as_a_whole_even_if_another_process_deletes_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, unlink = LocalFiles(tmp_path), os.unlink
    for name in ("a", "b", "c"):
        files.write(f"folder/{name}", b"x")

    def slower(path: str, **options: Any) -> None:
        unlink(path, **options)
        monkeypatch.setattr(os, "unlink", unlink)
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "unlink", slower)
    files.delete_folder("folder")
    assert files.names("") == []
