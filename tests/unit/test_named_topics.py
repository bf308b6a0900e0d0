"""Topics as settings name them, patterns too."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.settings import Settings
from spark_jobs.config.topics import is_meant, meant, value_of
from spark_jobs.contract.compatibility import Compatibility
from spark_jobs.formats.decoding import Decoded
from spark_jobs.formats.sources import decoders
from spark_jobs.ingest.query import QUERY
from spark_jobs.queries.manifest import KAFKA

_KNOWN = [
    "tenant-b.events",
    "tenant-a.events",
    "tenant-.events",
    "tenant-a.eventsX",
    "tenantXa.events",
    "other",
    "__own",
]
_SOURCE: dict[str, object] = {
    "event_type": "'activity'",
    "map": {"event_id": "$.id", "event_time": "$.at", "user_id": "'u'"},
}


def test_a_pattern_means_every_topic_that_fits() -> None:
    assert meant(["other", "tenant-*.events"], _KNOWN) == (
        *("other", "tenant-.events", "tenant-a.events", "tenant-b.events"),
    )
    assert meant(["*"], _KNOWN) == tuple(sorted(set(_KNOWN) - {"__own"}))
    assert meant(["__own", "none"], _KNOWN) == ("__own",)
    assert not is_meant("tenant-a.events\n", ["tenant-*.events"])


@given(
    st.lists(st.text("ab.*-", min_size=1, max_size=5), min_size=1, max_size=3), st.text("ab.-", min_size=1, max_size=8)
)
def test_what_is_meant_is_what_a_shell_would_match(topics: list[str], topic: str) -> None:
    rules = ["".join(".*" if one == "*" else re.escape(one) for one in pattern) for pattern in topics]
    assert is_meant(topic, topics) is any(re.fullmatch(rule, topic) for rule in rules)
    assert (topic in meant(topics, [topic])) is is_meant(topic, topics)


def test_a_name_comes_before_a_pattern() -> None:
    by_topic = {"a-*": 1, "a-b": 2, "*": 3}
    assert [value_of(one, by_topic) for one in ("a-b", "a-c", "x", "__x", None)] == [2, 1, 3, None, None]


def test_records_of_topics_by_pattern_are_decoded() -> None:
    source = _SOURCE | {"topics": "t-*", "compressed": True}
    found = value_of("t-1", decoders(Settings.model_validate({"source": {"a": source}}), None))
    assert found
    assert found.decode(b'{"id": 1}') == Decoded('{"id": 1}')


@pytest.mark.parametrize("topics", ["a/b", "a b", "", "a:b"])
def test_what_is_no_name_is_refused(topics: str) -> None:
    with pytest.raises(ValueError, match="no name of a topic"):
        Settings.model_validate({"source": {"a": _SOURCE | {"topics": [topics]}}})


def test_sources_agree_on_how_a_topic_is_read() -> None:
    sources = {"a": _SOURCE | {"topics": "t-*"}, "b": _SOURCE | {"topics": "t-1", "compressed": True}}
    with pytest.raises(ValueError, match=r"source\.b\.compressed: differs"):
        Settings.model_validate({"source": sources})
    Settings.model_validate({"source": {**sources, "b": {**sources["b"], "topics": "u-1"}}})


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ("a", "a*", Compatibility.SAFE),
        ("a-b,c", "a-*,c", Compatibility.SAFE),
        ("a-b-*", "a-*", Compatibility.SAFE),
        ("a-*", "a-b", Compatibility.BREAKING),
        ("a,b", "a", Compatibility.BREAKING),
    ],
)
def test_a_pattern_may_take_the_place_of_names(before: str, now: str, verdict: Compatibility) -> None:
    (setting,) = (one for one in QUERY.state if one.name == "topics")
    assert setting.judge(before, now)[0] is verdict
    assert setting.text(Settings.model_validate({"source": {"a": _SOURCE | {"topics": now}}}), KAFKA) == now
