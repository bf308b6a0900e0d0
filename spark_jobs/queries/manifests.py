"""The manifests of the checkpoints of a lake."""

from datetime import UTC, datetime
from urllib.parse import urlsplit

from spark_jobs import __version__
from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import local_path
from spark_jobs.lake.records import find_record, write_record
from spark_jobs.lake.store.files import hadoop_uri
from spark_jobs.queries.manifest import Manifest
from spark_jobs.queries.places import initial_key, manifest_key
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import find_query
from spark_jobs.queries.state_settings import setting


def new_manifest(
    query: str, settings: Settings, source: str, *, begins_at: str = "", follows: str = "", final_before_ms: int = 0
) -> Manifest:
    """The manifest of a new checkpoint of ``query``; see :class:`Manifest`."""
    what = find_query(query)
    return Manifest(
        query=query,
        package_version=__version__,
        state_format=what.state_format,
        created_at=datetime.now(UTC),
        settings=what.state_settings(settings, source),
        begins_at=begins_at,
        follows=follows,
        final_before_ms=final_before_ms,
        initial_state=_initial_state(what, settings),
    )


def with_initial_state_of(
    manifest: Manifest, before: Manifest | None, query: Query, settings: Settings, lake: Lake
) -> Manifest:
    """``manifest`` of a checkpoint that continues the one of ``before``, with the same initial state.

    Args:
        manifest: of the new checkpoint.
        before: of the earlier one; None: it is lost.
        query: of both.
        settings: those of the new one.
        lake: where they lie.
    """
    if query.initial_state is None:
        return manifest
    name, copy = query.initial_state.setting, lake.uri(initial_key(query.name))
    texts = {**manifest.settings, name: before.settings.get(name, "")} if before else manifest.settings
    still = (before.initial_state if before else copy) if keeps_initial_state(before, query, settings, lake) else ""
    return manifest.model_copy(update={"settings": texts, "initial_state": still})


def keeps_initial_state(before: Manifest | None, query: Query, settings: Settings, lake: Lake) -> bool:
    """Whether a checkpoint that continues the one of ``before`` (None: lost) has its initial state."""
    if query.initial_state is None:
        return False
    if before is None:  # the lake has a copy of the initial state
        return lake.is_table(initial_key(query.name))
    bound_to = [one for one in query.state if one.name in query.initial_state.depends_on]
    return bool(before.initial_state) and all(
        before.settings.get(one.name) == one.text(settings, "") for one in bound_to
    )


def _initial_state(query: Query, settings: Settings) -> str:
    """The URI of the initial state that ``settings`` name; empty if they name none."""
    location = str(setting(settings, query.initial_state.setting)) if query.initial_state else ""
    parts = urlsplit(location)
    if parts.scheme in ("s3", "s3a"):
        return f"s3a://{parts.netloc}{parts.path}".rstrip("/")
    return hadoop_uri(local_path(location)) if location.strip() else ""


def write_manifest(lake: Lake, manifest: Manifest, version: int) -> None:
    """Writes ``manifest`` next to its checkpoint."""
    write_record(lake, manifest_key(manifest.query, version), manifest)


def read_manifest(lake: Lake, query: str, version: int) -> Manifest | None:
    """The manifest of a checkpoint; None if it is missing or damaged."""
    return find_record(lake, manifest_key(query, version), Manifest)
