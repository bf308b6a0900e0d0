"""The manifest of a checkpoint: its query and the settings that its state depends on."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

FILES, KAFKA = "files", "kafka"
"""The kinds of source that ``ingest`` reads."""


class Manifest(BaseModel):
    """Stored next to a checkpoint, as ``_checkpoints/<job>/<query>/v<N>.json``."""

    model_config = ConfigDict(frozen=True)

    query: str
    package_version: str
    state_format: int
    created_at: datetime
    settings: dict[str, str]
    """By name, the settings that the state depends on, as text."""
    follows: str = ""
    """The writer of the table's last batch that a reset took into account when it created this version; empty: the
    table had no batch."""
    follows_batch: int | None = None
    """The number of that batch; None: an earlier version of adloom did the reset."""
    begins_at: str = ""
    """Where a version created by a reset starts reading, as Spark's JSON of Kafka offsets; empty: at the start."""
    final_before_ms: int = 0
    """Windows that end by then (ms since 1970) were final before a reset, and are not written by this version."""
    at_rest_until: int = -1
    """The version of the table it reads up to which the first checkpoint found rows at rest: none of them was late."""
    received_after_us: int = 0
    """Rows of the table it reads up to this ``ingest_time`` (microseconds since 1970) were read before a reset, after
    which the log no longer showed what was new; 0: the log shows it."""
    topic_ids: dict[str, str] = {}
    """Of ``ingest``, by name the id of each topic that its offsets mean; one without an id has none that is known."""
    initial_state: str = ""
    """The table or file that the first batch takes its state from; empty: the state starts empty."""
