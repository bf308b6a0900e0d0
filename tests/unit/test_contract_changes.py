"""What each kind of change of a contract means: by hand, and for random contracts."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.contract.changes import KINDS, Level, check
from spark_jobs.contract.contract import ColumnTerms, Contract, read_contract
from tests.support.contracts import (
    CONTRACTS,
    contract,
    edited,
    event_field,
    kept,
    record_rule,
    rule,
    source,
    table,
)

_NO_CONDITION = {"when": ""}
_GOLD = table("gold")
_COLUMN = ColumnTerms(name="status", type="STRING", meaning="")
_MORE = ColumnTerms(name="site", type="STRING", meaning="")


def _sources(*sources: object) -> Contract:
    return contract(sources=sources)


def _mapped(**expressions: str) -> Contract:
    return _sources(source(expressions={"event_id": "$.id", **expressions}))


def _tables(**changed: Any) -> Contract:
    return contract(tables=(table(**changed),))


def _rules(**changed: Any) -> Contract:
    return _tables(expectations=(rule(**changed),))


def _fields(*fields: object) -> Contract:
    return contract(fields=fields)


_S, _B = "safe", "breaking"
_CASES = [
    pytest.param(contract(), contract(name="other"), [("contract.name", _B)], id="name"),
    pytest.param(contract(), contract(owner="team"), [("contract.owner", _S)], id="owner"),
    # Sources.
    pytest.param(_sources(source()), _sources(source(), source("app")), [("source.app", _S)], id="source-after"),
    pytest.param(
        _sources(source()),
        _sources(source("app", topics=("other",)), source()),
        [("source.app", _S)],
        id="source-before-of-another-topic",
    ),
    pytest.param(
        _sources(source()),
        _sources(source("app"), source()),
        [("source.app", _S), ("sources of clicks", _B)],
        id="source-before",
    ),
    pytest.param(
        _sources(source(), source("app")),
        _sources(source("app"), source()),
        [("sources of clicks", _B)],
        id="sources-in-another-order",
    ),
    pytest.param(
        _sources(source(topics=("a",)), source("app", topics=("b",))),
        _sources(source("app", topics=("b",)), source(topics=("a",))),
        [],
        id="order-of-sources-of-different-topics",
    ),
    pytest.param(_sources(source(), source("app")), _sources(source()), [("source.app", _B)], id="source-removed"),
    pytest.param(
        _sources(source()), _sources(source(topics=("clicks", "more"))), [("source.web", _S)], id="topic-added"
    ),
    pytest.param(
        _sources(source(), source("app", topics=("app",))),
        _sources(source(topics=("clicks", "app")), source("app", topics=("app",))),
        [("source.web", _S), ("sources of app", _B)],
        id="topic-taken-from-a-later-source",
    ),
    pytest.param(
        _sources(source(topics=("clicks", "more"))), _sources(source()), [("source.web", _B)], id="topic-removed"
    ),
    pytest.param(
        _sources(source(topics=(), path="in")),
        _sources(source(topics=(), path="on")),
        [("source.web", _B)],
        id="folder",
    ),
    pytest.param(_sources(source()), _sources(source(format="avro")), [("source.web.format", _B)], id="format"),
    pytest.param(
        _sources(source()), _sources(source(when="$.type = 'clicks'")), [("source.web.when", _B)], id="when-changed"
    ),
    pytest.param(_sources(source(**_NO_CONDITION)), _sources(source()), [("source.web.when", _B)], id="when-added"),
    pytest.param(_sources(source()), _sources(source(**_NO_CONDITION)), [("source.web.when", _S)], id="when-dropped"),
    pytest.param(
        _sources(source(), source("app")),
        _sources(source(**_NO_CONDITION), source("app")),
        [("source.web.when", _B)],
        id="when-dropped-before-another-source",
    ),
    pytest.param(
        _sources(source(unknown="quarantine")),
        _sources(source(unknown="quarantine", **_NO_CONDITION)),
        [("source.web.when", _B)],
        id="when-dropped-where-unknown-fields-are-refused",
    ),
    pytest.param(
        _sources(source(when="$.a  =\n 'x  y'")), _sources(source(when=" $.a = 'x  y'")), [], id="white-space"
    ),
    pytest.param(
        _sources(source(when="$.a = 'x  y'")),
        _sources(source(when="$.a = 'x y'")),
        [("source.web.when", _B)],
        id="white-space-in-quotes",
    ),
    pytest.param(
        _sources(source(format="csv", encoding={"columns": "a"})),
        _sources(source(format="csv", encoding={"columns": "a,b"})),
        [("source.web.columns", _B)],
        id="csv-columns",
    ),
    pytest.param(
        _sources(source(format="avro")),
        _sources(source(format="avro", encoding={"schema_file": "ads.avsc"})),
        [("source.web.schema_file", _B)],
        id="schema-file",
    ),
    pytest.param(_sources(source()), _sources(source(unknown="quarantine")), [("source.web.unknown", _B)], id="strict"),
    pytest.param(
        _sources(source(unknown="quarantine")), _sources(source()), [("source.web.unknown", _S)], id="lenient"
    ),
    pytest.param(
        _sources(source()), _sources(source(may_lack=("user_id",))), [("source.web.may_lack", _B)], id="may-lack"
    ),
    pytest.param(
        _sources(source(may_lack=("user_id",))), _sources(source()), [("source.web.may_lack", _B)], id="must-have"
    ),
    # Mappings and kept columns.
    pytest.param(_mapped(), _mapped(event_id="$.uuid"), [("source.web.event_id", _B)], id="identity"),
    pytest.param(
        _mapped(cost_micros="$.a"), _mapped(cost_micros="$.b"), [("source.web.cost_micros", _B)], id="carried-value"
    ),
    pytest.param(
        _sources(source(expressions={"data": "$.a"}, unknown="quarantine")),
        _sources(source(expressions={"data": "$.b"}, unknown="quarantine")),
        [("source.web.data", _B)],
        id="carried-value-where-unknown-fields-are-refused",
    ),
    pytest.param(_mapped(), _mapped(cost_micros="$.a"), [("source.web.cost_micros", _B)], id="field-mapped"),
    pytest.param(_mapped(), _mapped(revokes="$.a"), [("source.web.revokes", _B)], id="refunds-mapped"),
    pytest.param(
        _mapped(event_id="$.a -- note\n || 'x'"),
        _mapped(event_id="$.a -- note || 'x'"),
        [("source.web.event_id", _B)],
        id="a-comment-takes-in-what-follows",
    ),
    pytest.param(
        _mapped(event_id="$.a || 'x'"), _mapped(event_id="$.a /* note */ ||\n 'x' -- more"), [], id="a-comment-is-added"
    ),
    pytest.param(_sources(source()), _sources(source(each="$.e")), [("source.web.each", _B)], id="list"),
    pytest.param(
        _sources(source(let={"body": "$.a"})),
        _sources(source(let={"body": "$.b"})),
        [("source.web.let.body", _B)],
        id="text-that-is-read",
    ),
    pytest.param(_sources(source()), _sources(source(lenient=("ip",))), [("source.web.lenient", _S)], id="lenient"),
    pytest.param(_sources(source(lenient=("ip",))), _sources(source()), [("source.web.lenient", _B)], id="strict"),
    pytest.param(_sources(source()), _sources(source(also=("app",))), [("source.web.also", _B)], id="others-too"),
    pytest.param(
        _sources(source()),
        _sources(source(keep=(kept(expression="upper($.a)"),))),
        [("source.web.keep.site", _B)],
        id="kept-if-it-can-be-computed",
    ),
    pytest.param(
        _sources(source(keep=(kept(),))),
        _sources(source(keep=(kept(expression="upper($.a)"),))),
        [("source.web.keep.site", _B)],
        id="kept-expression",
    ),
    pytest.param(_mapped(cost_micros="$.a"), _mapped(), [("source.web.cost_micros", _B)], id="field-unmapped"),
    pytest.param(_mapped(), _mapped(is_last="$.end"), [("source.web.is_last", _B)], id="sessions-end-by-a-field"),
    pytest.param(_mapped(is_last="$.end"), _mapped(), [("source.web.is_last", _B)], id="sessions-no-longer-do"),
    pytest.param(_sources(source()), _sources(source(keep=(kept(),))), [("source.web.keep.site", _S)], id="kept"),
    pytest.param(_sources(source(keep=(kept(),))), _sources(source()), [("source.web.keep.site", _B)], id="not-kept"),
    pytest.param(
        _sources(source(keep=(kept(),))),
        _sources(source(keep=(kept(kind="bigint"),))),
        [("source.web.keep.site", _B)],
        id="kept-type",
    ),
    pytest.param(
        _sources(source(keep=(kept(),))),
        _sources(source(keep=(kept(expression="$.page"),))),
        [("source.web.keep.site", _S)],
        id="kept-expression",
    ),
    # Events and records.
    pytest.param(
        _fields(), _fields(event_field("data", required=False)), [("event.data", _S)], id="optional-field-added"
    ),
    pytest.param(_fields(), _fields(event_field()), [("event.event_id", _B)], id="required-field-added"),
    pytest.param(
        _fields(), _fields(event_field(event_types=("click",))), [("event.event_id", _S)], id="fields-of-a-new-type"
    ),
    pytest.param(
        _fields(event_field("ad_id", event_types=("click",), required=False)),
        _fields(
            event_field("ad_id", event_types=("click",), required=False),
            event_field(event_types=("click", "view")),
        ),
        [("event.event_id", _B)],
        id="field-of-a-new-type-and-a-known-one",
    ),
    pytest.param(_fields(event_field()), _fields(), [("event.event_id", _B)], id="field-removed"),
    pytest.param(
        _fields(event_field()), _fields(event_field(type="BIGINT")), [("event.event_id", _B)], id="field-type"
    ),
    pytest.param(
        _fields(event_field()),
        _fields(event_field(event_types=("click",))),
        [("event.event_id", _B)],
        id="field-of-other-event-types",
    ),
    pytest.param(
        _fields(event_field(required=False)), _fields(event_field()), [("event.event_id", _B)], id="field-required"
    ),
    pytest.param(
        _fields(event_field()), _fields(event_field(required=False)), [("event.event_id", _B)], id="field-optional"
    ),
    pytest.param(
        _fields(event_field()),
        _fields(event_field(max_length=127)),
        [("event.event_id.max_length", _B)],
        id="shorter-ids",
    ),
    pytest.param(
        _fields(event_field()),
        _fields(event_field(max_length=129)),
        [("event.event_id.max_length", _S)],
        id="longer-ids",
    ),
    pytest.param(
        _fields(event_field(minimum=0)), _fields(event_field(minimum=1)), [("event.event_id.minimum", _B)], id="minimum"
    ),
    pytest.param(
        _fields(event_field(minimum=0)), _fields(event_field()), [("event.event_id.minimum", _S)], id="no-minimum"
    ),
    pytest.param(
        contract(),
        contract(records=(record_rule(), record_rule("too_old"))),
        [("record.too_old", _B)],
        id="record-rule-added",
    ),
    pytest.param(contract(), contract(records=()), [("record.record_too_large", _S)], id="record-rule-removed"),
    pytest.param(
        contract(), contract(records=(record_rule(limit=999),)), [("record.record_too_large", _B)], id="smaller-records"
    ),
    pytest.param(
        contract(), contract(records=(record_rule(limit=1001),)), [("record.record_too_large", _S)], id="larger-records"
    ),
    # Tables.
    pytest.param(contract(), contract(tables=(table(), _GOLD)), [("gold", _S)], id="table-added"),
    pytest.param(contract(tables=(table(), _GOLD)), contract(), [("gold", _B)], id="table-removed"),
    pytest.param(_tables(), _tables(path="elsewhere"), [("silver", _B)], id="table-moved"),
    pytest.param(_tables(), _tables(partition_by=("status",)), [("silver", _B)], id="partitions"),
    pytest.param(_tables(), _tables(columns=(_MORE, _COLUMN)), [("silver.site", _S)], id="column-added"),
    pytest.param(_tables(columns=(_COLUMN, _MORE)), _tables(), [("silver.site", _B)], id="column-removed"),
    pytest.param(_tables(columns=(_COLUMN, _MORE)), _tables(columns=(_MORE, _COLUMN)), [], id="order-of-columns"),
    pytest.param(
        _tables(),
        _tables(columns=(_COLUMN.model_copy(update={"type": "BIGINT"}),)),
        [("silver.status", _B)],
        id="column-type",
    ),
    pytest.param(
        _tables(settings={"sessionize.gap": "5min"}),
        _tables(settings={"sessionize.gap": "6min"}),
        [("silver: sessionize.gap", _B)],
        id="meaning",
    ),
    pytest.param(
        _tables(settings={}), _tables(settings={"x.gap": "6min"}), [("silver: x.gap", _S)], id="setting-is-new"
    ),
    pytest.param(
        _tables(settings={"x.gap": "6min"}), _tables(settings={}), [("silver: x.gap", _B)], id="setting-is-gone"
    ),
    pytest.param(
        _tables(settings={"x.watermark": "5min"}),
        _tables(settings={"x.watermark": "4min"}),
        [("silver: x.watermark", _S)],
        id="lateness",
    ),
    # Expectations.
    pytest.param(
        _tables(), _tables(expectations=(rule(), rule("more"))), [("silver: more", _S)], id="expectation-added"
    ),
    pytest.param(_tables(), _tables(expectations=()), [("silver: status_in_set", _B)], id="expectation-removed"),
    pytest.param(_rules(), _rules(values=("a",)), [("silver: status_in_set", _S)], id="fewer-values"),
    pytest.param(_rules(), _rules(values=("a", "b", "c")), [("silver: status_in_set", _B)], id="more-values"),
    pytest.param(_rules(), _rules(values=("b", "a")), [], id="order-of-values"),
    pytest.param(_rules(), _rules(meaning="It is one of ours."), [], id="other-words"),
    pytest.param(_rules(maximum=5), _rules(maximum=4), [("silver: status_in_set", _S)], id="closer-bounds"),
    pytest.param(_rules(maximum=5), _rules(maximum=6), [("silver: status_in_set", _B)], id="wider-bounds"),
    pytest.param(_rules(minimum=5), _rules(), [("silver: status_in_set", _B)], id="no-bound"),
    pytest.param(_rules(), _rules(mostly=0.9), [("silver: status_in_set", _B)], id="fewer-rows"),
    pytest.param(_rules(), _rules(severity="warning"), [("silver: status_in_set", _B)], id="only-a-warning"),
    pytest.param(_rules(severity="warning"), _rules(), [("silver: status_in_set", _S)], id="critical"),
    pytest.param(_rules(when="a = 1"), _rules(), [("silver: status_in_set", _S)], id="all-rows"),
    pytest.param(_rules(), _rules(when="a = 1"), [("silver: status_in_set", _B)], id="some-rows"),
    pytest.param(_rules(), _rules(column="state"), [("silver: status_in_set", _B)], id="other-column"),
    pytest.param(
        _rules(severity="warning"), _tables(expectations=()), [("silver: status_in_set", _S)], id="warning-removed"
    ),
    pytest.param(contract(lake=(rule(),)), contract(), [("lake: status_in_set", _B)], id="rule-of-the-lake-removed"),
]


@pytest.mark.parametrize(("old", "new", "expected"), _CASES)
def test_a_change_is_judged(old: Contract, new: Contract, expected: list[tuple[str, str]]) -> None:
    found = check(old, new).changes
    assert sorted((change.what, change.verdict.value) for change in found) == sorted(expected)
    assert all(change.before != change.now for change in found)


def test_the_cases_cover_every_kind_of_change() -> None:
    seen = set()
    for case in _CASES:
        old, new, _ = case.values
        assert isinstance(old, Contract)
        assert isinstance(new, Contract)
        seen |= {change.kind for change in check(old, new).changes}
    assert [kind.what for kind in KINDS if kind not in seen] == []


@pytest.mark.parametrize(
    ("before", "now", "new", "level"),
    [
        pytest.param("1.0", "1.0", contract(), Level.OK, id="nothing-changed"),
        pytest.param("1.0", "0.9", contract(), Level.OK, id="nothing-changed-but-the-version"),
        pytest.param("1.0", "1.0", contract(owner="team"), Level.WARNING, id="safe-under-the-same-version"),
        pytest.param("1.9", "1.10", contract(owner="team"), Level.OK, id="safe-with-a-minor"),
        pytest.param("1.2", "1.1", contract(owner="team"), Level.WARNING, id="safe-with-an-earlier-version"),
        pytest.param("1.2", "2.0", contract(owner="team"), Level.OK, id="safe-with-a-major"),
        pytest.param("1.2", "1.3", contract(tables=()), Level.ERROR, id="breaking-with-a-minor"),
        pytest.param("9.2", "10.0", contract(tables=()), Level.OK, id="breaking-with-a-major"),
        pytest.param("2.0", "1.0", contract(tables=()), Level.ERROR, id="breaking-with-an-earlier-version"),
    ],
)
def test_the_version_must_show_the_changes(before: str, now: str, new: Contract, level: Level) -> None:
    found = check(contract(version=before), new.model_copy(update={"version": now}))
    assert (found.version.before, found.version.now, found.version.level) == (before, now, level)


def test_what_the_version_should_be_is_said() -> None:
    assert "2.0 or later" in check(contract(version="1.4"), contract(version="1.4", tables=())).version.why
    assert "1.5 or later" in check(contract(version="1.4"), contract(version="1.4", owner="team")).version.why


def test_breaking_changes_come_first() -> None:
    found = check(contract(), contract(owner="team", tables=())).changes
    assert [change.verdict.value for change in found] == ["breaking", "safe"]


@given(CONTRACTS)
@settings(max_examples=40, deadline=None)
def test_a_contract_does_not_differ_from_itself(one: Contract) -> None:
    assert check(one, one).changes == ()


@given(CONTRACTS)
@settings(max_examples=40, deadline=None)
def test_a_contract_is_the_same_after_a_round_trip_through_json(one: Contract) -> None:
    assert read_contract(one.model_dump_json(), "here") == one


def _source_states() -> Iterator[Contract]:
    for when, unknown, field, keep, is_followed in product(
        ("", "$.a", "$.b"), ("keep", "quarantine"), (None, "$.a", "$.b"), (None, "$.a", "$.b"), (False, True)
    ):
        first = source(
            when=when,
            unknown=unknown,
            expressions={"data": field} if field else {},
            keep=(kept(expression=keep),) if keep else (),
        )
        yield _sources(first, *([source("app")] if is_followed else []))


def _order_states() -> Iterator[Contract]:
    topics = ((), ("t1",), ("t2",), ("t1", "t2"))
    for names in (("web", "app", "tv"), ("app", "web", "tv")):
        for read in product(topics, repeat=3):
            yield _sources(*(source(name, topics=place) for name, place in zip(names, read, strict=True) if place))


def _rule_states() -> Iterator[Contract]:
    yield _tables(expectations=())
    for severity, values, maximum, mostly, when in product(
        ("critical", "warning"), (("a",), ("a", "b"), ("b",)), (None, 1, 2), (0.5, 1.0), (None, "a = 1", "b = 1")
    ):
        yield _rules(severity=severity, values=values, maximum=maximum, mostly=mostly, when=when)


def _field_states() -> Iterator[Contract]:
    yield _fields()
    for required, longest, least in product((False, True), (None, 1, 2), (None, 1, 2)):
        yield _fields(event_field(required=required, max_length=longest, minimum=least))


def _other_states() -> Iterator[Contract]:
    for limit, gap, watermark, columns in product(
        (0, None, 1, 2), ("", "1h", "2h"), ("", "1h", "2h"), ((), (_COLUMN,), (_COLUMN, _MORE))
    ):
        texts = {"x.gap": gap, "x.watermark": watermark}
        described = {name: text for name, text in texts.items() if text}
        rules = () if limit == 0 else (record_rule(limit=limit),)
        yield contract(records=rules, tables=(table(settings=described, columns=columns),))


@pytest.mark.parametrize(
    "states",
    [_source_states, _order_states, _rule_states, _field_states, _other_states],
    ids=lambda states: states.__name__.strip("_"),
)
def test_two_safe_changes_are_safe_together_in_every_small_case(states: Callable[[], Iterator[Contract]]) -> None:
    all_of_them = list(states())
    # By contract, those that it can safely become.
    safe = [{number for number, new in enumerate(all_of_them) if not check(old, new).breaking} for old in all_of_them]
    assert all(number in reached for number, reached in enumerate(safe))
    assert any(len(reached) > 1 for reached in safe)
    wrong = [
        (all_of_them[one], all_of_them[two], all_of_them[three])
        for one, reached in enumerate(safe)
        for two in reached
        for three in safe[two] - reached
    ]
    assert wrong[:1] == []


@given(CONTRACTS, st.data())
@settings(max_examples=40, deadline=None)
def test_safe_steps_are_safe_together(first: Contract, data: st.DataObject) -> None:
    last, steps = first, 0
    for _ in range(10):
        after = edited(data.draw, last)
        if not check(last, after).breaking:
            last, steps = after, steps + (after != last)
    assert [change.what for change in check(first, last).breaking] == [], steps


@given(CONTRACTS, CONTRACTS)
@settings(max_examples=40, deadline=None)
def test_two_contracts_can_always_be_compared(one: Contract, other: Contract) -> None:
    found = check(one, other)
    assert all(change.before != change.now for change in found.changes)
    assert (found.version.level is Level.ERROR) <= bool(found.breaking)
