"""The files that ``ingest`` has read, as Spark notes them in its checkpoint."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from spark_jobs.lake.layout import Lake


def files_read(lake: Lake, checkpoint: str, reached: Sequence[Any]) -> dict[Path, int]:
    """The files that the batches of ``ingest`` up to an end have read, each with when it had been modified then.

    In milliseconds since 1970.

    Args:
        lake: the lake.
        checkpoint: the key of the checkpoint of ``ingest``.
        reached: the end of a batch, as Spark's sources write it.
    """
    found: dict[Path, int] = {}
    for number, offset in enumerate(reached):
        folder = f"{checkpoint}/sources/{number}"
        for entry in _entries(lake, folder):
            if int(entry["batchId"]) <= int(offset["logOffset"]):
                found[path_of(str(entry["path"]))] = int(entry["timestamp"])
    return found


def path_of(uri: str) -> Path:
    """The file that Spark means by ``uri``."""
    return Path(f"/{unquote(uri).removeprefix('file:').lstrip('/')}")


def _entries(lake: Lake, folder: str) -> Iterator[Mapping[str, Any]]:
    """The notes of Spark's source of files in ``folder``; it sums them up now and then, in a ``.compact``."""
    names = [name for name in lake.files.names(folder) if not name.startswith(".")]
    sums = [name for name in names if name.endswith(".compact")]
    last = max((int(name.removesuffix(".compact")) for name in sums), default=-1)
    chosen = [f"{last}.compact"] if sums else []
    chosen += [name for name in names if name.isdigit() and int(name) > last]
    for name in chosen:
        _version, *lines = (lake.files.read(f"{folder}/{name}") or b"").decode().splitlines()
        yield from (json.loads(line) for line in lines)
