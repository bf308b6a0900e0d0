"""Removes superseded checkpoints, and those left by an unfinished reset."""

import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta

from spark_jobs.config.durations import format_duration
from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import CheckpointError, LakeInUseError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.queries.manifests import read_manifest
from spark_jobs.queries.places import (
    checkpoint_in_use,
    checkpoint_key,
    checkpoint_name,
    checkpoint_versions,
    manifest_key,
)
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.streams.checkpoints import Checkpoint, list_checkpoints

_TARGET = re.compile(r"([a-z]+)/([a-z_]+)/v([1-9]\d{0,8})")


@dataclass(frozen=True)
class Finding:
    """A checkpoint, and why it must stay; ``why`` is empty if it may be removed."""

    checkpoint: Checkpoint
    why: str


def parse_targets(targets: Iterable[str]) -> set[tuple[str, int]]:
    """Parses ``targets`` to (query, version).

    Paths are never taken from user input, so none can lead out of the folder of checkpoints.

    Raises:
        CheckpointError: a target is not ``<job>/<query>/v<N>`` with the name of a query.
    """
    found = set()
    for target in targets:
        parts = _TARGET.fullmatch(target)
        if not parts or JOB_OF_QUERY.get(parts[2]) != parts[1]:
            raise CheckpointError(
                f"{target!r} is not the name of a checkpoint; write <job>/<query>/v<N>, as in attribute/sessionize/v1 "
                "(`adloom checkpoints list` shows them)"
            )
        found.add((parts[2], int(parts[3])))
    return found


def find_superseded(
    lake: Lake, retention: timedelta, now: datetime, targets: set[tuple[str, int]] | None = None
) -> Iterator[Finding]:
    """Decides for all checkpoints, or for ``targets``, which may be removed and which must stay.

    A checkpoint may be removed if it has a manifest and its query has used a newer one for ``retention``. What a killed
    reset left behind may be removed if nothing has been written to it for as long.

    Raises:
        CheckpointError: one of ``targets`` does not exist.
    """
    found = {(one.query, one.version): one for one in list_checkpoints(lake)}
    if unknown := (targets or set()) - found.keys():
        query, version = min(unknown)
        raise CheckpointError(f"lake {lake.root} has no checkpoint {checkpoint_name(query, version)}")
    for place in sorted(targets or found, key=list(found).index):
        yield Finding(found[place], _why_it_stays(lake, found[place], retention, now))


def remove(lake: Lake, checkpoint: Checkpoint, s3: S3Settings, retention: timedelta, now: datetime) -> None:
    """Removes ``checkpoint`` and then its manifest; jobs may run.

    A superseded one needs no lock: its job has used a newer one for ``retention``. What an unfinished reset left does,
    because the next reset writes to the same folder.

    Args:
        lake: the lake.
        checkpoint: one of it.
        s3: gives the length of a lease.
        retention: how long a checkpoint is kept after it was replaced.
        now: the time (UTC).

    Raises:
        CheckpointError: it must stay.
        LakeInUseError: an unfinished reset left it, and the job is running.
    """
    is_left = checkpoint.version > checkpoint_in_use(lake, checkpoint.query)
    try:
        with hold_job(lake, checkpoint.job, s3) if is_left else nullcontext():
            # Checked again: a listing of a large lake takes a while.
            why = _why_it_stays(lake, checkpoint, retention, now)
            if why:
                raise CheckpointError(f"checkpoint {checkpoint.name} stays: {why}")
            lake.files.delete_folder(checkpoint_key(checkpoint.query, checkpoint.version))
            lake.files.delete([manifest_key(checkpoint.query, checkpoint.version)])
    except LakeInUseError as error:
        raise LakeInUseError(f"checkpoint {checkpoint.name} stays: left by an unfinished reset; {error}") from error


def _why_it_stays(lake: Lake, checkpoint: Checkpoint, retention: timedelta, now: datetime) -> str:
    query, version = checkpoint.query, checkpoint.version
    if lake.is_local:
        place = lake.path / checkpoint_key(query, version)
        if place.resolve() != place:
            return f"it is a symbolic link to {place.resolve()}"
    if version == checkpoint_in_use(lake, query):
        return "in use"
    if version > checkpoint_in_use(lake, query):
        left = _kept_for(checkpoint.written_at or now, retention, now)
        return left and f"left by an unfinished reset; {left}, or until the next reset"
    if read_manifest(lake, query, version) is None:
        return "it has no manifest, so its owner is unknown"
    newer = min(other for other in checkpoint_versions(lake, query) if other > version)
    successor = read_manifest(lake, query, newer)
    if successor is None:
        return f"the manifest of its successor v{newer} is damaged"
    return _kept_for(successor.created_at, retention, now)


def _kept_for(since: datetime, retention: timedelta, now: datetime) -> str:
    """How much longer ``retention`` keeps a checkpoint unused since ``since``; empty if that time is over."""
    left = timedelta(seconds=int((since + retention - now).total_seconds()))
    return f"kept for {format_duration(left)} more" if left > timedelta() else ""
