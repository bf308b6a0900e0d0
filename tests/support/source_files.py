"""A folder of JSON Lines files: which records it holds, in which order, read by the rules and nothing else."""

import gzip
import os
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from zlib import crc32

from tests.support.verdicts import UTF8_BOM

_BLANK = b" \t\r"
_PRICE = re.compile(rb',"cost_micros":\d+')
_FIRST_MTIME = 1_700_000_000


def split_records(content: bytes) -> list[bytes]:
    """The records of one file: what lies between line feeds, blank lines left out."""
    return [line for line in content.removeprefix(UTF8_BOM).split(b"\n") if line.strip(_BLANK)]


def read_files(source: Path) -> list[list[bytes]]:
    """The records of each file of the folder ``source``, files in order of modification time, then name."""
    files = [path for pattern in ("*.jsonl", "*.jsonl.gz") for path in source.glob(pattern)]
    files.sort(key=lambda path: (path.stat().st_mtime_ns, path.name))
    return [split_records(gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes()) for p in files]


def write_files(source: Path, files: Sequence[Sequence[bytes]]) -> Path:
    """Write each of ``files``, a list of records, to the new folder ``source``, a second apart; returns ``source``."""
    source.mkdir(parents=True)
    for number, records in enumerate(files):
        path = source / f"{number:04}.jsonl"
        path.write_bytes(b"".join(record + b"\n" for record in records))
        os.utime(path, (_FIRST_MTIME + number, _FIRST_MTIME + number))
    return source


def without_prices(source: Path) -> Path:
    """Takes the cost out of two impressions of three in the files of ``source``: of the same ones in each run."""
    for file in source.iterdir():
        times = file.stat()
        records = [
            _PRICE.sub(b"", record) if crc32(record) % 3 else record for record in file.read_bytes().splitlines()
        ]
        file.write_bytes(b"".join(record + b"\n" for record in records))
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    return source


def shuffle_times(source: Path, seed: int) -> None:
    """Gives the files of ``source`` each other's modification times, as a copy or an archive may."""
    files = sorted(source.iterdir())
    times = [file.stat().st_mtime for file in files]
    Random(seed).shuffle(times)
    for file, time in zip(files, times, strict=True):
        os.utime(file, (time, time))
