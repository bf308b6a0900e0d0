"""A topic that was deleted and created again is told from the one that was read, whatever its offsets."""

import json
from pathlib import Path

import pytest

from spark_jobs.config.sections import KafkaSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.errors import CheckpointError, SourceError
from spark_jobs.ingest.kafka import starting_offsets
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.ingest.topics import Topic
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.manifest import KAFKA
from spark_jobs.queries.manifests import new_manifest, read_manifest, write_manifest
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_in_use, checkpoint_key, manifest_key
from spark_jobs.streams.checkpoints import claim
from spark_jobs.streams.topic_ids import agree_on_topics, next_offsets, recreated

_STRICT = Settings(kafka=KafkaSettings(topics=("ads", "web")))
_LENIENT = Settings(kafka=KafkaSettings(topics=("ads", "web"), fail_on_data_loss=False))
_DONE = {"ads": {"0": 1000, "1": 990}, "web": {"0": 7}}
_PLANNED = {"ads": {"0": 1010, "1": 995}, "web": {"0": 9}}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake whose first checkpoint of ingest has no batch yet."""
    lake = open_lake(str(tmp_path / "lake"))
    claim(lake, _STRICT, [INGEST], source=KAFKA)
    return lake


def _topics(**ids: str) -> dict[str, Topic]:
    return {name: Topic(id=one, partitions=("0", "1")) for name, one in ids.items()}


def _plan(lake: Lake, batch: int, reached: object, version: int = 1) -> None:
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": 1}
    lines = ("v1", json.dumps(metadata), json.dumps(reached))
    lake.files.write(f"{checkpoint_key(INGEST, version)}/offsets/{batch}", "\n".join(lines).encode())


def _read(lake: Lake) -> None:
    """A batch is in bronze, and the next one is planned."""
    lake.files.write(f"{checkpoint_key(INGEST, 1)}/metadata", b'{"id": "writer-1"}')
    _plan(lake, 0, _DONE)
    note = CommitNote(writer="writer-1", batch=0, query=INGEST, reached=[_DONE])
    commit = {"commitInfo": {"operation": "WRITE", "userMetadata": note.as_metadata()}}
    lake.files.write(commit_key(BRONZE_EVENTS, 0), json.dumps(commit).encode())
    _plan(lake, 1, _PLANNED)


def _ids(lake: Lake, version: int = 1) -> dict[str, str]:
    found = read_manifest(lake, INGEST, version)
    assert found
    return found.topic_ids


def test_ids_are_kept_from_the_first_start_on_and_those_of_new_topics_are_added(lake: Lake) -> None:
    assert agree_on_topics(lake, _STRICT, _topics(ads="a1")) == ""
    _read(lake)
    created_at = read_manifest(lake, INGEST, 1)
    agree_on_topics(lake, _STRICT, _topics(ads="a1", web="w1"))
    assert _ids(lake) == {"ads": "a1", "web": "w1"}
    after = read_manifest(lake, INGEST, 1)
    assert created_at
    assert after == created_at.model_copy(update={"topic_ids": {"ads": "a1", "web": "w1"}}), "and nothing else"


def test_a_lake_of_an_earlier_version_takes_the_ids_at_its_next_start(lake: Lake) -> None:
    _read(lake)
    assert _ids(lake) == {}
    agree_on_topics(lake, _STRICT, _topics(ads="a1", web="w1"))
    assert _ids(lake) == {"ads": "a1", "web": "w1"}


def test_brokers_that_give_no_ids_change_nothing(lake: Lake) -> None:
    agree_on_topics(lake, _STRICT, _topics(ads="a1", web="w1"))
    _read(lake)
    agree_on_topics(lake, _STRICT, _topics(ads="", web=""))
    assert _ids(lake) == {"ads": "a1", "web": "w1"}


def test_a_recreated_topic_is_refused_with_what_was_lost_and_what_to_do(lake: Lake) -> None:
    agree_on_topics(lake, _STRICT, _topics(ads="a1", web="w1"))
    _read(lake)
    with pytest.raises(SourceError) as refusal:
        agree_on_topics(lake, _STRICT, _topics(ads="a2", web="w1"))
    text = str(refusal.value)
    assert "topic ads was deleted and created again since ingest read it (id a1, now a2)" in text
    assert "(partition 0 from offset 1,010, partition 1 from offset 995)" in text
    assert "kafka.fail_on_data_loss = false" in text
    assert "web" not in text
    assert (checkpoint_in_use(lake, INGEST), _ids(lake)["ads"]) == (1, "a1"), "the next start refuses, too"


def test_without_fail_on_data_loss_the_new_topic_is_read_from_its_beginning_and_others_where_bronze_ends(
    lake: Lake,
) -> None:
    agree_on_topics(lake, _STRICT, _topics(ads="a1", web="w1"))
    _read(lake)
    lake.files.write(f"{checkpoint_key(INGEST, 2)}/offsets/0", b"left by a killed reset")
    topics = _topics(ads="a2", web="w1")
    begins_at = agree_on_topics(lake, _LENIENT, topics)
    assert json.loads(begins_at) == {"web": _DONE["web"]}
    assert json.loads(starting_offsets(topics, begins_at)) == {"ads": {"0": -2, "1": -2}, "web": {"0": 7, "1": -2}}
    assert (checkpoint_in_use(lake, INGEST), _ids(lake, 2)) == (2, {"ads": "a2", "web": "w1"})
    assert lake.files.names(checkpoint_key(INGEST, 2)) == []
    # Killed before its first batch: the next start is as good.
    claim(lake, _STRICT, [INGEST], source=KAFKA)
    assert agree_on_topics(lake, _STRICT, topics) == begins_at
    manifest, note = read_manifest(lake, INGEST, checkpoint_in_use(lake, INGEST)), last_note(lake, INGEST)
    assert manifest
    assert note
    assert (manifest.follows, manifest.follows_batch) == (note.writer, note.batch), "a driver that lost its lock"
    assert (checkpoint_in_use(lake, INGEST), _ids(lake, 2)["ads"]) == (2, "a2")


def test_a_topic_of_which_nothing_was_read_may_be_created_again(lake: Lake) -> None:
    agree_on_topics(lake, _STRICT, _topics(ads="a1", web="w1"))
    agree_on_topics(lake, _STRICT, _topics(ads="a2", web="w1"))
    assert _ids(lake)["ads"] == "a2"
    _plan(lake, 0, {"ads": {"0": 0, "1": 0}, "web": {"0": 7}})
    assert recreated(lake, {"ads": "a3", "web": "w1"}) == []
    assert [one.name for one in recreated(lake, {"ads": "a3", "web": "w2"})] == ["web"]


def test_a_reset_checkpoint_without_batches_knows_where_it_begins(lake: Lake) -> None:
    manifest = new_manifest(INGEST, _STRICT, KAFKA, begins_at=json.dumps(_DONE))
    write_manifest(lake, manifest.model_copy(update={"topic_ids": {"ads": "a1"}}), 2)
    assert next_offsets(lake) == _DONE
    assert [one.read_to for one in recreated(lake, {"ads": "a2"})] == [_DONE["ads"]]


def test_files_have_no_offsets_and_a_damaged_plan_or_a_missing_manifest_is_named(lake: Lake) -> None:
    _plan(lake, 0, {"logOffset": 3})
    assert next_offsets(lake) == {}
    lake.files.write(f"{checkpoint_key(INGEST, 1)}/offsets/1", b"v1\n{half")
    with pytest.raises(CheckpointError, match=r"offsets/1 is damaged.*adloom checkpoints reset ingest"):
        next_offsets(lake)
    lake.files.delete([manifest_key(INGEST, 1)])
    with pytest.raises(CheckpointError, match="is gone: start again"):
        agree_on_topics(lake, _STRICT, _topics(ads="a1"))
