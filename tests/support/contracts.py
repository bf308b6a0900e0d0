"""Contracts of few parts, and random ways to edit them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from spark_jobs.contract.contract import (
    ColumnTerms,
    Contract,
    Expectation,
    FieldTerms,
    KeptTerms,
    RecordTerms,
    SourceTerms,
    TableTerms,
    Terms,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]
Part = TypeVar("Part", bound=Terms)


def source(name: str = "web", **changed: Any) -> SourceTerms:
    terms: dict[str, Any] = {
        "name": name,
        "topics": ("clicks",),
        "format": "json",
        "when": "$.type = 'click'",
        "expressions": {"event_type": "'click'", "event_id": "$.id", "event_time": "$.at", "user_id": "$.user"},
        "unknown": "keep",
    }
    return SourceTerms.model_validate({**terms, **changed})


def kept(name: str = "site", kind: str = "string", expression: str = "$.site") -> KeptTerms:
    return KeptTerms(name=name, type=kind, expression=expression)


def event_field(name: str = "event_id", **changed: Any) -> FieldTerms:
    terms: dict[str, Any] = {"name": name, "type": "STRING", "meaning": "", "required": True, "max_length": 128}
    return FieldTerms.model_validate({**terms, **changed})


def record_rule(verdict: str = "record_too_large", limit: int | None = 1000, unit: str = "bytes") -> RecordTerms:
    return RecordTerms(verdict=verdict, meaning="It is short.", limit=limit, unit=unit)


def rule(name: str = "status_in_set", **changed: Any) -> Expectation:
    terms = {"name": name, "kind": "in_set", "column": "status", "meaning": "It is known.", "severity": "critical"}
    return Expectation.model_validate({**terms, "values": ("a", "b"), **changed})


def table(name: str = "silver", **changed: Any) -> TableTerms:
    terms: dict[str, Any] = {
        "name": name,
        "path": f"lake/{name}",
        "meaning": "",
        "columns": (ColumnTerms(name="status", type="STRING", meaning=""),),
        "settings": {"sessionize.gap": "5min", "sessionize.watermark": "10min"},
        "expectations": (rule(),),
    }
    return TableTerms.model_validate({**terms, **changed})


def contract(**changed: Any) -> Contract:
    terms: dict[str, Any] = {
        "version": "1.0",
        "name": "ads",
        "fields": (event_field(), event_field("data", required=False, max_length=None)),
        "records": (record_rule(),),
        "sources": (source(),),
        "tables": (table(),),
    }
    return Contract.model_validate({**terms, **changed})


_LIMITS = st.sampled_from([None, 1, 2, 3])
_EXPRESSIONS = st.sampled_from(["$.a", "$.b"])
_TOPICS = st.lists(st.sampled_from(["t1", "t2", "t3"]), min_size=1, max_size=3, unique=True).map(tuple)
_FIELDS = st.sampled_from(["event_id", "is_last", "cost_micros", "campaign_id"])
_SOURCES = st.builds(
    source,
    st.sampled_from(["web", "app", "tv"]),
    topics=_TOPICS,
    when=st.sampled_from(["", "$.a = 1", "$.b = 1"]),
    expressions=st.dictionaries(_FIELDS, _EXPRESSIONS),
    keep=st.lists(
        st.builds(kept, st.sampled_from(["k1", "k2"]), st.sampled_from(["string", "bigint"]), _EXPRESSIONS),
        max_size=2,
        unique_by=lambda one: one.name,
    ),
    may_lack=st.sampled_from([(), ("user_id",)]),
    each=st.sampled_from(["", "$.events"]),
    also=st.sampled_from([(), ("other",)]),
    lenient=st.sampled_from([(), ("ip",)]),
    let=st.sampled_from([{}, {"body": "$.a"}, {"body": "$.b"}]),
    unknown=st.sampled_from(["keep", "quarantine"]),
    encoding=st.sampled_from([{}, {"columns": "a"}, {"columns": "a,b"}]),
)
_EVENT_FIELDS = st.builds(
    event_field,
    st.sampled_from(["event_id", "data", "more"]),
    event_types=st.sampled_from([(), ("click",), ("view",)]),
    type=st.sampled_from(["STRING", "BIGINT"]),
    required=st.booleans(),
    max_length=_LIMITS,
    minimum=_LIMITS,
)
_RECORD_RULES = st.builds(record_rule, st.sampled_from(["too_large", "too_late"]), _LIMITS, st.just("bytes"))
_RULES = st.builds(
    rule,
    st.sampled_from(["r1", "r2"]),
    kind=st.sampled_from(["in_set", "between"]),
    column=st.sampled_from(["status", "state"]),
    values=st.sampled_from([("a",), ("a", "b"), ("a", "b", "c"), ("b", "a")]),
    minimum=_LIMITS,
    maximum=_LIMITS,
    mostly=st.sampled_from([0.5, 0.9, 1.0]),
    severity=st.sampled_from(["critical", "warning"]),
    when=st.sampled_from([None, "a = 1", "b = 1"]),
)
_COLUMNS = st.builds(
    ColumnTerms, name=st.sampled_from(["c1", "c2"]), type=st.sampled_from(["STRING", "BIGINT"]), meaning=st.just("")
)


def _some(parts: st.SearchStrategy[Part], key: str = "name") -> st.SearchStrategy[tuple[Part, ...]]:
    return st.lists(parts, max_size=3, unique_by=lambda one: getattr(one, key)).map(tuple)


_TABLES = st.builds(
    table,
    st.sampled_from(["silver", "gold"]),
    path=st.sampled_from(["p1", "p2"]),
    partition_by=st.sampled_from([(), ("c1",)]),
    columns=_some(_COLUMNS),
    settings=st.dictionaries(st.sampled_from(["x.gap", "x.watermark"]), st.sampled_from(["1h", "2h"])),
    expectations=_some(_RULES),
)
CONTRACTS = st.builds(
    contract,
    version=st.sampled_from(["1.0", "1.1", "2.0"]),
    owner=st.sampled_from(["", "team"]),
    fields=_some(_EVENT_FIELDS),
    records=_some(_RECORD_RULES, "verdict"),
    sources=_some(_SOURCES),
    tables=_some(_TABLES),
    lake=_some(_RULES),
)
"""Contracts of few parts with few values, so that two of them often share some."""
_PARTS: dict[str, tuple[st.SearchStrategy[Any], str]] = {
    "fields": (_EVENT_FIELDS, "name"),
    "records": (_RECORD_RULES, "verdict"),
    "sources": (_SOURCES, "name"),
    "tables": (_TABLES, "name"),
    "lake": (_RULES, "name"),
}


def edited(draw: Draw, before: Contract) -> Contract:
    """``before`` with one part added, removed, moved, or with one of its properties as in another one."""
    where = draw(st.sampled_from(sorted(_PARTS)))
    strategy, key = _PARTS[where]
    parts = list(getattr(before, where))
    other = draw(strategy)
    place = draw(st.integers(0, len(parts)))
    taken = [getattr(one, key) for one in parts]
    if getattr(other, key) not in taken:
        parts.insert(place, other)
    elif place == len(parts) and draw(st.booleans()):
        parts.append(parts.pop(0))
    elif draw(st.integers(0, 9)) == 0:
        parts.pop(taken.index(getattr(other, key)))
    else:
        at = taken.index(getattr(other, key))
        parts[at] = _mixed(draw, parts[at], other, key)
    return before.model_copy(update={where: tuple(parts)})


def _mixed(draw: Draw, one: Any, other: Any, key: str) -> Any:
    """``one`` with one property, or one entry of a property, of ``other``."""
    name = draw(st.sampled_from([name for name in type(one).model_fields if name != key]))
    mine, theirs = getattr(one, name), getattr(other, name)
    if isinstance(mine, dict) and draw(st.booleans()):
        return one.model_copy(update={name: {**mine, **theirs}})
    if name in ("keep", "columns", "expectations") and draw(st.booleans()):
        return one.model_copy(update={name: _joined(mine, theirs)})
    return one.model_copy(update={name: theirs})


def _joined(mine: Sequence[Any], theirs: Sequence[Any]) -> tuple[Any, ...]:
    names = [one.name for one in mine]
    return (*mine, *(one for one in theirs if one.name not in names))
