"""The checkpoints of a lake: what each belongs to, and whether a start may use it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from spark_jobs import __version__
from spark_jobs.contracts.errors import CheckpointError
from spark_jobs.contracts.jobs import JOB_OF_QUERY
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.manifest import STATE_FORMATS, Change, Manifest, Verdict, changes, state_settings
from spark_jobs.contracts.settings import Settings
from spark_jobs.runtime.whole_files import write_text


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that has been begun. ``bytes`` is its size on disk; ``last_batch`` the last one completed, or -1."""

    job: str
    query: str
    version: int
    manifest: Manifest | None
    last_batch: int
    bytes: int


def claim(lake: Lake, settings: Settings, queries: Iterable[str], *, source: str) -> list[Change]:
    """Makes sure that ``queries`` may start on ``lake`` with ``settings``, and writes the manifests of new checkpoints.

    To be called with the locks of their jobs held.

    Returns:
        The changes since the checkpoints were begun, none of them breaking.

    Raises:
        CheckpointError: one is breaking.
    """
    found = preflight(lake, settings, queries, source=source)
    broken = [change for change in found if change.verdict is Verdict.BREAKING]
    if broken:
        told = "; ".join(f"{one.query}: {one.setting} was {one.before}, is {one.now}: {one.why}" for one in broken)
        raise CheckpointError(
            f"the checkpoints of {lake.root} cannot be used with these settings: {told}. "
            "Set them back to what they were, or begin a new lake; `adloom preflight` shows all changes"
        )
    for query in queries:
        if not _is_begun(lake, query):
            manifest = Manifest(
                query=query,
                package_version=__version__,
                state_format=STATE_FORMATS[query],
                created_at=datetime.now(UTC),
                settings=state_settings(query, settings, source),
            )
            write_text(_manifest_file(lake, query), manifest.model_dump_json(indent=2) + "\n")
    return found


def preflight(lake: Lake, settings: Settings, queries: Iterable[str], *, source: str) -> list[Change]:
    """How ``settings`` differ from those that the checkpoints of ``queries`` belong to."""
    found: list[Change] = []
    for query in queries:
        if not _is_begun(lake, query):
            continue
        manifest = _read_manifest(lake, query)
        if manifest:
            found.extend(changes(manifest, state_settings(query, settings, source)))
        else:
            why = "without it nobody knows what its state depends on"
            found.append(Change(query, "manifest", "missing or damaged", "needed", Verdict.BREAKING, why))
    return found


def list_checkpoints(lake: Lake) -> Iterator[Checkpoint]:
    """The checkpoints of ``lake``, in the order in which rows flow."""
    for query, job in JOB_OF_QUERY.items():
        if _is_begun(lake, query):
            folder = _folder(lake, query)
            size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            done = [int(file.name) for file in (folder / "commits").glob("*") if file.name.isdigit()]
            yield Checkpoint(job, query, 1, _read_manifest(lake, query), max(done, default=-1), size)


def _is_begun(lake: Lake, query: str) -> bool:
    """Whether there is state to misuse: a batch has been planned."""
    return any(file.name.isdigit() for file in (_folder(lake, query) / "offsets").glob("*"))


def _folder(lake: Lake, query: str) -> Path:
    return lake.checkpoint_folder(JOB_OF_QUERY[query], query)


def _manifest_file(lake: Lake, query: str) -> Path:
    folder = _folder(lake, query)
    return folder.with_name(f"{folder.name}.json")


def _read_manifest(lake: Lake, query: str) -> Manifest | None:
    try:
        return Manifest.model_validate_json(_manifest_file(lake, query).read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None
