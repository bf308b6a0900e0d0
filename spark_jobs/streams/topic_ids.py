"""Whether a topic is still the one that ``ingest`` has read, or another one of its name.

Spark compares offsets only. It would read a topic that was deleted and created again from where it stopped in the old
one, and skip the beginning. Kafka never gives an id twice, so ``ingest`` keeps those of its topics in the manifest of
its checkpoint.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_jobs.config.settings import Settings
from spark_jobs.errors import CheckpointError, SourceError
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.ingest.topics import Topic
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import read_plan
from spark_jobs.queries.manifest import KAFKA, Manifest
from spark_jobs.queries.manifests import new_manifest, read_manifest, write_manifest
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key, checkpoint_name

Offsets = dict[str, dict[str, int]]
"""By topic and partition, the offset of the next record to read."""
HOW_TO_GO_ON = (
    "start the job deduplicate once with kafka.fail_on_data_loss = false (docs/runbook.md, Kafka lost records)"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recreated:
    """A topic that was deleted and created again after ``ingest`` had read it.

    Attributes:
        name: of both topics.
        before: the id of the one that it has read.
        now: the id of the one there is.
        read_to: by partition, how far it had read the old one.
    """

    name: str
    before: str
    now: str
    read_to: dict[str, int]

    @property
    def text(self) -> str:
        """The event, and what is lost at most; for people to read."""
        places = ", ".join(f"partition {number} from offset {at:,}" for number, at in sorted(self.read_to.items()))
        return (
            f"topic {self.name} was deleted and created again since ingest read it (id {self.before}, now {self.now}); "
            f"at most the rest of the old one is lost ({places})"
        )


def agree_on_topics(lake: Lake, settings: Settings, topics: Mapping[str, Topic]) -> str:
    """Checks that ``topics`` are those that ``ingest`` has read, and keeps the ids of those that are new to it.

    With ``kafka.fail_on_data_loss`` off, a recreated topic gets a new checkpoint that begins with the topic's first
    record and continues all others where bronze ends. Call it while holding the lock of the job, after
    :func:`spark_jobs.streams.checkpoints.claim`.

    Args:
        lake: the lake.
        settings: those of the start.
        topics: as Kafka describes them now.

    Returns:
        Where a checkpoint without batches starts, as Spark's JSON of offsets; empty: as the settings say.

    Raises:
        SourceError: a topic was recreated, and ``kafka.fail_on_data_loss`` is on.
        CheckpointError: the plan of the last batch is damaged.
    """
    version = checkpoint_in_use(lake, INGEST)
    before = read_manifest(lake, INGEST, version)
    if before is None:  # claim() has written one, so somebody has just deleted it
        raise CheckpointError(f"the manifest of {checkpoint_key(INGEST, version)} of {lake.root} is gone: start again")
    manifest, again = before, recreated(lake, {name: topic.id for name, topic in topics.items()})
    if again and settings.kafka.fail_on_data_loss:
        raise SourceError(
            f"{'; '.join(one.text for one in again)}. Offsets of the old one mean nothing in the new one: to read that "
            f"from its beginning, and all others from where they were, {HOW_TO_GO_ON}"
        )
    if again:
        version += 1
        manifest = _beginning_again(lake, settings, before, {one.name for one in again})
        for one in again:
            _log.warning("%s; %s reads the new one from its beginning", one.text, checkpoint_name(INGEST, version))
    ids = {**manifest.topic_ids, **{name: topic.id for name, topic in topics.items() if topic.id}}
    if ids != before.topic_ids:
        # A reset that was killed may have left a folder of that version.
        if again:
            lake.files.delete_folder(checkpoint_key(INGEST, version))
        manifest = manifest.model_copy(update={"topic_ids": ids})
        write_manifest(lake, manifest, version)
    return manifest.begins_at


def recreated(lake: Lake, ids: Mapping[str, str]) -> list[Recreated]:
    """The topics that are others than those that ``ingest`` has read records of.

    Args:
        lake: the lake.
        ids: by name, the id that each topic has now; empty if it is not known.

    Raises:
        CheckpointError: the plan of the last batch is damaged.
    """
    manifest = read_manifest(lake, INGEST, checkpoint_in_use(lake, INGEST))
    known, reached = manifest.topic_ids if manifest else {}, next_offsets(lake)
    return [
        Recreated(name, known[name], now, reached[name])
        for name, now in ids.items()
        if now and name in known and known[name] != now and any(reached.get(name, {}).values())
    ]


def next_offsets(lake: Lake) -> Offsets:
    """How far ``ingest`` has read each topic; empty if it reads files, or has read nothing.

    Raises:
        CheckpointError: the plan of the last batch is damaged.
    """
    version = checkpoint_in_use(lake, INGEST)
    planned = checkpoint_batches(lake, INGEST, version, "offsets")
    if not planned:
        manifest = read_manifest(lake, INGEST, version)
        return _offsets(json.loads(manifest.begins_at)) if manifest and manifest.begins_at else {}
    key = f"{checkpoint_key(INGEST, version)}/offsets/{planned[-1]}"
    try:
        reached: list[Any] = read_plan(lake.files.read(key) or b"").reached
    except ValueError as error:
        raise CheckpointError(f"{lake.shown(key)} is damaged: `adloom checkpoints reset {INGEST}`") from error
    return {name: offsets for one in reached for name, offsets in _offsets(one).items()}


def _offsets(reached: Any) -> Offsets:
    """The offsets in the position of a source; files have one that is no map of topics."""
    found = reached.items() if isinstance(reached, dict) else ()
    return {name: offsets for name, offsets in found if isinstance(offsets, dict)}


def _beginning_again(lake: Lake, settings: Settings, before: Manifest, names: set[str]) -> Manifest:
    """The manifest of a checkpoint that continues where bronze ends, but for the topics ``names``.

    As a reset of ``ingest`` does it: a batch that was planned and is not in bronze is planned again.
    """
    note = last_note(lake, INGEST)
    if note is None:
        reached = _offsets(json.loads(before.begins_at)) if before.begins_at else None
    else:
        reached = _offsets(note.reached[0])
    begins_at = "" if reached is None else json.dumps({name: at for name, at in reached.items() if name not in names})
    follows = (note.writer, note.batch) if note else (before.follows, before.follows_batch)
    kept = {"topic_ids": before.topic_ids, "follows": follows[0], "follows_batch": follows[1]}
    return new_manifest(INGEST, settings, KAFKA, begins_at=begins_at).model_copy(update=kept)
