"""``[source.NAME]``: what is refused, and what the message says."""

from typing import Any

import pytest
from pydantic import ValidationError

from spark_jobs.config.folders import Folder
from spark_jobs.config.settings import Settings

_MAP = {"event_id": "$.id", "event_time": "timestamp_millis($.ts)", "user_id": "$.user"}
_SOURCE: dict[str, Any] = {"event_type": "'activity'", "map": _MAP}
_AVRO = {"format": "avro", "topics": "t", "schema_file": "ads.avsc"}


def _settings(*sources: dict[str, Any], **sections: Any) -> Settings:
    return Settings.model_validate(
        {"source": {f"s{number}": {**_SOURCE, **source} for number, source in enumerate(sources)}, **sections}
    )


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        pytest.param([{"topics": "t", "path": "in"}], "path and topics are both set", id="two-origins"),
        pytest.param([{"topics": "t"}, {"path": "in"}], "s1 has a path, and source.s0 topics", id="files-and-kafka"),
        pytest.param([{"format": "parquet", "topics": "t"}], "a format of files", id="parquet-topic"),
        pytest.param([{"format": "protobuf", "path": "in"}], "no files of Protobuf", id="protobuf-files"),
        pytest.param([{"format": "protobuf"}], "topics is missing", id="protobuf-anywhere"),
        pytest.param([{"format": "csv", "topics": "t"}], "columns is missing", id="csv-topic-without-columns"),
        pytest.param([{"format": "csv", "columns": "a,b,a"}], "a is named twice", id="column-twice"),
        pytest.param([{"format": "csv", "delimiter": "," * 9}], "at most 8 characters", id="long-delimiter"),
        pytest.param([{"format": "csv", "delimiter": '"'}], "cannot be the quote", id="delimiter-is-quote"),
        pytest.param([{"delimiter": ";"}], "delimiter is a setting of format csv, and format is json", id="no-csv"),
        pytest.param([{"schema_file": "a.avsc"}], "format avro and protobuf", id="schema-of-json"),
        pytest.param([{**_AVRO, "message": "M"}], "message is a setting of format protobuf", id="message-of-avro"),
        pytest.param([{"format": "avro", "topics": "t"}], "needs the schema of its records", id="no-schema"),
        pytest.param(
            [_AVRO, {**_AVRO, "schema_file": "b.avsc"}], "s1.schema_file: differs from that of source.s0", id="schemas"
        ),
        pytest.param([_AVRO, {"topics": "t"}], "s1.format: differs", id="formats-of-a-topic"),
        pytest.param(
            [{"format": "csv", "path": "in"}, {"format": "csv", "path": "in", "delimiter": ";"}],
            "s1.delimiter: differs from that of source.s0, which reads the same files (",
            id="delimiters-of-a-folder",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(sources: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason.replace("(", r"\(")):
        _settings(*sources)


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param([{"path": "in"}, {"path": "in", "format": "csv"}], id="formats-of-a-folder"),
        pytest.param([{"path": "a", "format": "csv"}, {"path": "b", "format": "csv", "delimiter": ";"}], id="folders"),
        pytest.param([{"topics": "t"}, {"topics": "t", "when": "$.a = 'b'"}], id="conditions"),
    ],
)
def test_sources_that_read_different_files_may_differ(sources: list[dict[str, Any]]) -> None:
    assert _settings(*sources).sources


def test_the_registry_gives_the_schemas_unless_a_source_says_otherwise() -> None:
    source = {"format": "avro", "topics": "t"}
    assert _settings(source, registry={"url": "http://registry:8081"})
    with pytest.raises(ValidationError, match="needs the schema of its records"):
        _settings({**source, "in_registry": False}, registry={"url": "http://registry:8081"})


def test_the_folders_and_topics_of_all_sources_are_read() -> None:
    assert _settings({"path": "a"}, {"path": "b"}, {"path": "a"}).folders == (Folder.of("a"), Folder.of("b"))
    assert _settings({"topics": "a,b"}, {"topics": "b,c"}).topics == ("a", "b", "c")
