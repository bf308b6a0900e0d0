"""Where the parts of each query lie in a lake: its progress, its checkpoints and their files."""

import re
from typing import Literal

from spark_jobs.lake.layout import Lake
from spark_jobs.places import CHECKPOINTS, INITIAL, PROGRESS
from spark_jobs.queries.registry import JOB_OF_QUERY

_MANIFEST = re.compile(r"v(\d+)\.json")


def checkpoint_versions(lake: Lake, query: str) -> list[int]:
    """The versions of the checkpoint of ``query`` that have a manifest, in ascending order."""
    found = map(_MANIFEST.fullmatch, lake.files.names(query_key(query)))
    return sorted(int(name[1]) for name in found if name)


def checkpoint_in_use(lake: Lake, query: str) -> int:
    """The version of the checkpoint of ``query`` that is in use: the newest one."""
    return max(checkpoint_versions(lake, query), default=1)


def checkpoint_batches(lake: Lake, query: str, version: int, kind: Literal["offsets", "commits"]) -> list[int]:
    """The numbers of the batches in a checkpoint, ascending: ``offsets`` were planned, ``commits`` are done.

    Spark removes old ones.
    """
    return lake.numbers(f"{checkpoint_key(query, version)}/{kind}")


def progress_key(query: str) -> str:
    """The latest progress of ``query``, as JSON."""
    return f"{PROGRESS}/{JOB_OF_QUERY[query]}/{query}.json"


def query_key(query: str) -> str:
    """Folder of all checkpoints of ``query``."""
    return f"{CHECKPOINTS}/{JOB_OF_QUERY[query]}/{query}"


def checkpoint_key(query: str, version: int) -> str:
    """Folder of a checkpoint. Its manifest is next to it: :func:`manifest_key`."""
    return f"{CHECKPOINTS}/{checkpoint_name(query, version)}"


def checkpoint_name(query: str, version: int) -> str:
    """The name of a checkpoint, for people."""
    return f"{JOB_OF_QUERY[query]}/{query}/v{version}"


def manifest_key(query: str, version: int) -> str:
    """The manifest of a checkpoint, as JSON."""
    return f"{checkpoint_key(query, version)}.json"


def initial_key(query: str) -> str:
    """The initial state that ``query`` started with, a Delta table."""
    return f"{INITIAL}/{query}"


def trend_key(query: str) -> str:
    """The lake key of the trend of ``query``."""
    return f"{PROGRESS}/{JOB_OF_QUERY[query]}/{query}.trend.json"
