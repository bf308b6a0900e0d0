"""Removing checkpoints that others have taken the place of, and those that were never finished."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from spark_jobs.contracts.durations import format_duration
from spark_jobs.contracts.errors import CheckpointError, LakeInUseError
from spark_jobs.contracts.lake import Lake, checkpoint_key, checkpoint_name, manifest_key
from spark_jobs.contracts.sections import S3Settings
from spark_jobs.queries import JOB_OF_QUERY
from spark_jobs.runtime.checkpoints import Checkpoint, list_checkpoints
from spark_jobs.runtime.lock import hold_job
from spark_jobs.runtime.manifests import read_manifest

_TARGET = re.compile(r"([a-z]+)/([a-z_]+)/v([1-9]\d{0,8})")


@dataclass(frozen=True)
class Finding:
    """A checkpoint, and why it stays; an empty ``why`` if it may go."""

    checkpoint: Checkpoint
    why: str


def parse_targets(targets: Iterable[str]) -> set[tuple[str, int]]:
    """The checkpoints that ``targets`` name, as (query, version).

    Raises:
        CheckpointError: one is not ``<job>/<query>/v<N>`` of a query that there is: a path never leaves the one folder
            that holds checkpoints, because none is taken from a person.
    """
    found = set()
    for target in targets:
        parts = _TARGET.fullmatch(target)
        if not parts or JOB_OF_QUERY.get(parts[2]) != parts[1]:
            raise CheckpointError(
                f"{target!r} names no checkpoint; write <job>/<query>/v<N>, as in attribute/sessionize/v1 "
                "(`adloom checkpoints list` shows them)"
            )
        found.add((parts[2], int(parts[3])))
    return found


def find_superseded(
    lake: Lake, retention: timedelta, now: datetime, targets: set[tuple[str, int]] | None = None
) -> Iterator[Finding]:
    """What may go and what must stay, of all checkpoints or of ``targets``.

    A checkpoint may go that has a manifest, and whose query has used a newer one for ``retention``; and what a reset
    that was killed has left, when nobody has written to it for as long.

    Raises:
        CheckpointError: one of ``targets`` is not there.
    """
    found = {(one.query, one.version): one for one in list_checkpoints(lake)}
    if unknown := (targets or set()) - found.keys():
        query, version = min(unknown)
        raise CheckpointError(f"lake {lake.root} has no checkpoint {checkpoint_name(query, version)}")
    for place in sorted(targets or found, key=list(found).index):
        yield Finding(found[place], _why_it_stays(lake, found[place], retention, now))


def remove(lake: Lake, checkpoint: Checkpoint, s3: S3Settings, retention: timedelta, now: datetime) -> None:
    """Removes ``checkpoint`` and then its manifest, with the lock of its job held.

    Raises:
        CheckpointError: it must stay.
        LakeInUseError: the job is running.
    """
    try:
        with hold_job(lake, checkpoint.job, s3):
            # Looked at once more: only now can nobody change it.
            why = _why_it_stays(lake, checkpoint, retention, now)
            if why:
                raise CheckpointError(f"checkpoint {checkpoint.name} stays: {why}")
            lake.files.delete_folder(checkpoint_key(checkpoint.query, checkpoint.version))
            lake.files.delete([manifest_key(checkpoint.query, checkpoint.version)])
    except LakeInUseError as error:
        raise LakeInUseError(f"checkpoint {checkpoint.name} stays: {error}") from error


def _why_it_stays(lake: Lake, checkpoint: Checkpoint, retention: timedelta, now: datetime) -> str:
    query, version = checkpoint.query, checkpoint.version
    if lake.is_local:
        place = lake.path / checkpoint_key(query, version)
        if place.resolve() != place:
            return f"a symbolic link leads out to {place.resolve()}"
    if version == lake.version(query):
        return "in use"
    if version > lake.version(query):
        left = _kept_for(checkpoint.written_at or now, retention, now)
        return left and f"a reset that was not finished; {left}, or until the next one"
    if read_manifest(lake, query, version) is None:
        return "it has no manifest: nobody knows whose it is"
    newer = min(other for other in lake.versions(query) if other > version)
    successor = read_manifest(lake, query, newer)
    if successor is None:
        return f"the manifest of v{newer}, which took its place, is damaged"
    return _kept_for(successor.created_at, retention, now)


def _kept_for(since: datetime, retention: timedelta, now: datetime) -> str:
    """How long ``retention`` keeps what is of no use ``since``; empty if that time is over."""
    left = timedelta(seconds=int((since + retention - now).total_seconds()))
    return f"kept for {format_duration(left)} more" if left > timedelta() else ""
