"""The manifests of the checkpoints of a lake."""

from datetime import UTC, datetime

from pydantic import ValidationError

from spark_jobs import __version__
from spark_jobs.contracts.lake import Lake, manifest_key
from spark_jobs.contracts.manifest import STATE_FORMATS, Manifest, state_settings
from spark_jobs.contracts.settings import Settings


def new_manifest(query: str, settings: Settings, source: str, *, begins_at: str = "", follows: str = "") -> Manifest:
    """The manifest of a checkpoint of ``query`` that is begun now; see :class:`Manifest`."""
    return Manifest(
        query=query,
        package_version=__version__,
        state_format=STATE_FORMATS[query],
        created_at=datetime.now(UTC),
        settings=state_settings(query, settings, source),
        begins_at=begins_at,
        follows=follows,
    )


def write_manifest(lake: Lake, manifest: Manifest, version: int) -> None:
    """Puts ``manifest`` beside its checkpoint."""
    lake.files.write(manifest_key(manifest.query, version), manifest.model_dump_json(indent=2).encode() + b"\n")


def read_manifest(lake: Lake, query: str, version: int) -> Manifest | None:
    """The manifest of a checkpoint; None if it is missing or damaged."""
    try:
        return Manifest.model_validate_json(lake.files.read(manifest_key(query, version)) or b"")
    except ValidationError:
        return None
