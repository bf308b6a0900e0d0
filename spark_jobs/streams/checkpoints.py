"""The checkpoints of a lake: the query of each, and whether that query may start on it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from spark_jobs.config.settings import Settings
from spark_jobs.contract.compatibility import Compatibility, SettingChange
from spark_jobs.errors import CheckpointError
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.manifest import FILES, KAFKA, Manifest
from spark_jobs.queries.manifests import new_manifest, read_manifest, write_manifest
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key, checkpoint_name, query_key
from spark_jobs.queries.registry import JOB_OF_QUERY, find_query
from spark_jobs.queries.state_settings import changes
from spark_jobs.streams.checkpoint_check import compare_with_table

_VERSION = re.compile(r"v([1-9]\d*)(?:\.json)?")
_OF_THE_START = {
    "begins_at",
    "follows",
    "follows_batch",
    "final_before_ms",
    "topic_ids",
    "at_rest_until",
    "received_after_us",
}
"""Fields of a manifest that say where the checkpoint begins, and stay if it has not been used."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is in use or was. ``last_batch`` is the last completed batch, or -1."""

    job: str
    query: str
    version: int
    is_current: bool
    manifest: Manifest | None
    last_batch: int
    files: int
    bytes: int
    written_at: datetime | None

    @property
    def name(self) -> str:
        """The name people use: ``<job>/<query>/v<N>``."""
        return checkpoint_name(self.query, self.version)


def claim(lake: Lake, settings: Settings, queries: Iterable[str], *, source: str) -> list[SettingChange]:
    """Checks that ``queries`` may start on ``lake`` with ``settings``, and writes the manifests of new checkpoints.

    Call it while holding the locks of their jobs.

    Returns:
        The changes since the checkpoints were created, none of them breaking.

    Raises:
        CheckpointError: a change is breaking, or a checkpoint does not match the last batch in its table.
    """
    found = preflight(lake, settings, queries, source=source)
    broken = [change for change in found if change.verdict is Compatibility.BREAKING]
    if broken:
        reasons = "; ".join(f"{one.query}: {one.setting} was {one.before}, is {one.now}: {one.why}" for one in broken)
        raise CheckpointError(
            f"the checkpoints of {lake.root} cannot be used with these settings: {reasons}. "
            "Restore the old settings, or reset the checkpoints with `adloom checkpoints reset`; "
            "`adloom preflight` lists all changes"
        )
    for query in queries:
        compare_with_table(lake, query)
        if not _is_used(lake, query):
            before = read_manifest(lake, query, checkpoint_in_use(lake, query))
            kept = before.model_dump(include=_OF_THE_START) if before else {}
            if not kept.get("follows"):
                kept |= _at_rest(lake, query)
            manifest = new_manifest(query, settings, source).model_copy(update=kept)
            write_manifest(lake, manifest, checkpoint_in_use(lake, query))
    return found


def _at_rest(lake: Lake, query: str) -> dict[str, int]:
    table = find_query(query).table_read
    newest = lake.newest_commit(table.path) if table else None
    return {} if newest is None else {"at_rest_until": newest}


def preflight(lake: Lake, settings: Settings, queries: Iterable[str], *, source: str) -> list[SettingChange]:
    """How ``settings`` differ from those with which the checkpoints of ``queries`` were created."""
    found: list[SettingChange] = []
    for query in queries:
        if not _is_used(lake, query):
            continue
        manifest = read_manifest(lake, query, checkpoint_in_use(lake, query))
        if manifest:
            what = find_query(query)
            found.extend(changes(what, manifest, what.state_settings(settings, source)))
        else:
            why = "without it, what its state depends on is unknown"
            found.append(SettingChange(query, "manifest", "missing or damaged", "needed", Compatibility.BREAKING, why))
    return found


def source_of(ingest: Manifest | None, settings: Settings) -> str:
    """The source that ingest will read, by its checkpoint or ``settings``: :data:`FILES` or :data:`KAFKA`.

    It is an argument of its start, not a setting, so a change of it cannot be foreseen.
    """
    if ingest:
        return KAFKA if ingest.settings.get("source") == KAFKA else FILES
    return KAFKA if settings.kafka.bootstrap_servers else FILES


def list_checkpoints(lake: Lake) -> Iterator[Checkpoint]:
    """The checkpoints of ``lake``, with or without a manifest, in the order of the data flow and then by version."""
    for query in JOB_OF_QUERY:
        folders = map(_VERSION.fullmatch, lake.files.names(query_key(query)))
        for version in sorted({int(name[1]) for name in folders if name}):
            found = _look_at(lake, query, version)
            if found.files:
                yield found


def _look_at(lake: Lake, query: str, version: int) -> Checkpoint:
    """The checkpoint of ``query`` as it is now."""
    folder = checkpoint_key(query, version)
    files = list(lake.files.walk(folder))
    done = [int(file.name) for file in files if file.key.startswith(f"{folder}/commits/") and file.name.isdigit()]
    return Checkpoint(
        job=JOB_OF_QUERY[query],
        query=query,
        version=version,
        is_current=version == checkpoint_in_use(lake, query),
        manifest=read_manifest(lake, query, version),
        last_batch=max(done, default=-1),
        files=len(files),
        bytes=sum(file.bytes for file in files),
        written_at=max((file.modified_at for file in files), default=None),
    )


def _is_used(lake: Lake, query: str) -> bool:
    """Whether the checkpoint is in use: a batch has been planned."""
    return bool(checkpoint_batches(lake, query, checkpoint_in_use(lake, query), "offsets"))
