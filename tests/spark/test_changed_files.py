"""Files that are written to after they were read: nothing reads the rest, so status says which they are."""

import gzip
import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from spark_jobs.cli.status import status_page, warning_of_files
from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.ingest.changed_files import ChangedFile, changed_files
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.support.runs import run_in

pytestmark = pytest.mark.slow

_S3 = S3Settings()


def _line(event_id: str) -> bytes:
    event = {"event_type": "activity", "event_id": event_id, "event_time": "2025-01-06T12:00:00Z", "user_id": "u"}
    return json.dumps(event).encode() + b"\n"


def _append(file: Path, data: bytes) -> None:
    with file.open("ab") as end:
        end.write(data)


def _printed(lake: Lake) -> str:
    console = Console(file=io.StringIO(), width=2000)
    console.print(status_page(lake, datetime.now(UTC), warning_of_files(lake, _S3)))
    output: str = console.file.getvalue()  # type: ignore[attr-defined]
    return output


def test_status_names_the_files_of_which_the_end_was_never_read(spark: SparkSession, tmp_path: Path) -> None:
    source, lake, settings = tmp_path / " so urce %41#\u00fc", open_lake(str(tmp_path / "lake")), Settings()
    source.mkdir()
    whole = _line("1") + _line("2")
    contents = {
        "no line end.jsonl": whole[:-1],
        "blank end.jsonl": whole + b"\n  \n\r\n",
        "blank.jsonl": b"\n\n",
        "half.jsonl": whole[:-30],
        "filled later.jsonl": b"",
        "more to come.jsonl.gz": gzip.compress(_line("3")),
    }
    for name, content in contents.items():
        (source / name).write_bytes(content)
        os.utime(source / name, (1_700_000_000, 1_700_000_000))
    run_in(spark, settings, lake, source, drain=False)
    for name in ("no line end.jsonl", "blank end.jsonl", "blank.jsonl"):
        (source / name).touch()
    assert changed_files(lake, _S3) == []
    assert "changed after" not in _printed(lake)
    rest = {"filled later.jsonl": _line("4"), "more to come.jsonl.gz": gzip.compress(_line("5"))}
    for number, (name, more) in enumerate({"half.jsonl": whole[-30:], **rest}.items()):
        _append(source / name, more)
        os.utime(source / name, (1_700_000_060 - number, 1_700_000_060 - number))
    (source / "next.jsonl").write_bytes(_line("6"))
    run_in(spark, settings, lake, source, drain=False)
    place = source.resolve()
    assert changed_files(lake, _S3) == [
        ChangedFile(place / "half.jsonl", len(whole) - 30, len(whole)),
        ChangedFile(place / "filled later.jsonl", 0, len(_line("4"))),
        ChangedFile(
            place / "more to come.jsonl.gz",
            len(_line("3")),
            len(_line("3") + _line("5")),
        ),
    ]
    page = _printed(lake)
    assert "3 of the input files changed after they were read" in page
    assert f"half.jsonl ({len(whole) - 30} bytes then, {len(whole)} now)" in page
    assert "next.jsonl" not in page
    for name in ("half.jsonl", *rest):
        (source / name).unlink()
    assert changed_files(lake, _S3) == [], "files may be moved away"
