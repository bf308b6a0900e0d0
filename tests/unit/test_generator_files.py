"""Generated files: equal bytes for equal specs, in order, complete or absent."""

import errno
import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.errors import SettingsError
from spark_jobs.generator.files import EventFiles
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.traffic import Traffic


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
def test_the_same_spec_gives_the_same_bytes(tmp_path: Path, *, compress: bool) -> None:
    spec = GeneratorSpec(events=3000, seed=5, gzip=compress)
    first, second = generate(spec, tmp_path / "a"), generate(spec, tmp_path / "b")
    assert first == second
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_files_contain_the_stream_in_order_with_equal_line_counts(tmp_path: Path) -> None:
    spec = GeneratorSpec(events=3000, files=7)
    summary = generate(spec, tmp_path)
    files = contents(tmp_path)

    assert list(files) == [f"events-{number:05d}.jsonl" for number in range(7)]
    assert b"".join(files.values()) == b"".join(line for chunk in Traffic(spec).chunks() for line in chunk)
    counts = [text.count(b"\n") for text in files.values()]
    assert max(counts) - min(counts) <= 1
    assert sum(counts) == summary.records == spec.record_count


def test_the_summary_adds_up(tmp_path: Path) -> None:
    spec = GeneratorSpec(events=3000)
    summary = generate(spec, tmp_path)
    assert summary.impressions + summary.clicks + summary.activity == 3000
    assert summary.records == 3000 + summary.duplicates + sum(summary.malformed.values())
    assert (summary.duplicates, sum(summary.malformed.values())) == (90, 15)
    assert (summary.conversions, summary.repeats, summary.refunds) == (0, 0, 0)
    assert (summary.files, summary.bytes) == (24, sum(map(len, contents(tmp_path).values())))


def test_gzip_files_hold_the_same_lines(tmp_path: Path) -> None:
    plain, packed = GeneratorSpec(events=2000, files=2), GeneratorSpec(events=2000, files=2, gzip=True)
    generate(plain, tmp_path / "plain")
    summary = generate(packed, tmp_path / "packed")
    unpacked = {name.removesuffix(".gz"): gzip.decompress(data) for name, data in contents(tmp_path / "packed").items()}
    assert unpacked == contents(tmp_path / "plain")
    assert summary.bytes == sum(map(len, contents(tmp_path / "packed").values()))


def test_the_header_of_a_gzip_file_holds_no_name_and_no_time(tmp_path: Path) -> None:
    generate(GeneratorSpec(events=10, files=1, gzip=True), tmp_path)
    flags_and_time = (tmp_path / "events-00000.jsonl.gz").read_bytes()[3:8]
    assert flags_and_time == bytes(5)


def test_modification_times_follow_the_order_of_arrival(tmp_path: Path) -> None:
    start = datetime(2025, 1, 6, 8, tzinfo=UTC)
    generate(GeneratorSpec(events=500, files=3, start=start), tmp_path)
    times = [path.stat().st_mtime for path in sorted(tmp_path.iterdir())]
    assert times == [start.timestamp() + number for number in range(3)]


def test_there_are_never_more_files_than_records(tmp_path: Path) -> None:
    summary = generate(GeneratorSpec(events=2, files=8), tmp_path)
    assert summary.files == len(contents(tmp_path)) == 2


@pytest.mark.parametrize("name", ["events-00000.jsonl", "other.jsonl", "other.jsonl.gz"])
def test_a_folder_with_events_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}\n")
    with pytest.raises(SettingsError, match=f"already contains {name}"):
        generate(GeneratorSpec(events=10), tmp_path)
    assert contents(tmp_path) == {name: b"{}\n"}


def test_a_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be used for events: Not a directory"):
        generate(GeneratorSpec(events=10), tmp_path / "file" / "events")


def test_missing_folders_are_created_and_other_files_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    out.mkdir(parents=True)
    (out / "README.md").write_text("mine")
    generate(GeneratorSpec(events=10, files=1), out)
    assert set(contents(out)) == {"README.md", "events-00000.jsonl"}


def test_a_file_appears_only_once_it_is_complete(tmp_path: Path) -> None:
    with EventFiles(tmp_path, 4, 2, 0, compress=False) as files:
        files.write([b"1\n", b"2\n", b"3\n"])
        assert [path.name for path in sorted(tmp_path.glob("[!.]*"))] == ["events-00000.jsonl"]
        files.write([b"4\n"])
    assert contents(tmp_path) == {"events-00000.jsonl": b"1\n2\n", "events-00001.jsonl": b"3\n4\n"}


def test_a_failure_removes_the_incomplete_file_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "utime", full)
    with pytest.raises(SettingsError, match="No space left on device; free some space"):
        generate(GeneratorSpec(events=100), tmp_path)
    assert contents(tmp_path) == {}


def test_progress_rises_to_the_number_of_events(tmp_path: Path) -> None:
    seen: list[int] = []
    generate(GeneratorSpec(events=23_000), tmp_path, seen.append)
    assert seen == sorted(set(seen))
    assert seen[-1] == 23_000
    assert len(seen) >= 4
