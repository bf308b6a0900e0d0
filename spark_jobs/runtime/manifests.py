"""The manifests of the checkpoints of a lake."""

from datetime import UTC, datetime

from spark_jobs import __version__
from spark_jobs.contracts.manifest import Manifest
from spark_jobs.contracts.settings import Settings
from spark_jobs.lake.layout import Lake, manifest_key
from spark_jobs.queries import find_query
from spark_jobs.runtime.records import find_record, write_record


def new_manifest(
    query: str, settings: Settings, source: str, *, begins_at: str = "", follows: str = "", final_before_ms: int = 0
) -> Manifest:
    """The manifest of a new checkpoint of ``query``; see :class:`Manifest`."""
    return Manifest(
        query=query,
        package_version=__version__,
        state_format=find_query(query).state_format,
        created_at=datetime.now(UTC),
        settings=find_query(query).state_settings(settings, source),
        begins_at=begins_at,
        follows=follows,
        final_before_ms=final_before_ms,
    )


def write_manifest(lake: Lake, manifest: Manifest, version: int) -> None:
    """Writes ``manifest`` next to its checkpoint."""
    write_record(lake, manifest_key(manifest.query, version), manifest)


def read_manifest(lake: Lake, query: str, version: int) -> Manifest | None:
    """The manifest of a checkpoint; None if it is missing or damaged."""
    return find_record(lake, manifest_key(query, version), Manifest)
