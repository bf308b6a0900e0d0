"""Kinds of change of what goes out: tables and expectations, each with its verdict and why."""

from spark_jobs.contract.changes.kind import Whom, group
from spark_jobs.contract.compatibility import Compatibility

_SAFE, _BREAKING = Compatibility.SAFE, Compatibility.BREAKING
_CONSUMERS = Whom.CONSUMERS

_tables = group("Tables")
TABLE_ADDED = _tables("a table is added", _SAFE, _CONSUMERS, "nobody reads it yet")
TABLE_REMOVED = _tables("a table is removed", _BREAKING, _CONSUMERS, "its readers find no new rows")
TABLE_MOVED = _tables("the path of a table changes", _BREAKING, _CONSUMERS, "readers find it by its path")
PARTITIONS = _tables(
    "a table is partitioned differently",
    _BREAKING,
    _CONSUMERS,
    "Delta cannot change it in place, and queries that skip files by the former columns read them all",
)
COLUMN_ADDED = _tables("a column is added", _SAFE, _CONSUMERS, "readers that name their columns see no difference")
COLUMN_REMOVED = _tables("a column is removed", _BREAKING, _CONSUMERS, "queries that name it fail, or find null")
COLUMN_TYPE = _tables(
    "a column has another type", _BREAKING, _CONSUMERS, "readers, and the table itself, have the former one"
)
MEANING = _tables(
    "a setting changes that says what rows mean, such as sessionize.gap or attribute.window",
    _BREAKING,
    _CONSUMERS,
    "rows from now on mean something else than those before, and are not comparable",
)
MEANING_ADDED = _tables(
    "a setting is new that says what rows mean",
    _SAFE,
    _CONSUMERS,
    "an adloom without the setting did what its default does",
)
LATENESS = _tables(
    "a watermark changes",
    _SAFE,
    _CONSUMERS,
    "rows mean the same; a longer one delivers them later and loses fewer to lateness, a shorter one the reverse",
)

_expectations = group("Expectations")
RULE_ADDED = _expectations(
    "an expectation is added", _SAFE, _CONSUMERS, "more is promised; validation fails if the rows do not keep it"
)
RULE_REMOVED = _expectations(
    "a critical expectation is removed", _BREAKING, _CONSUMERS, "readers may count on what it promised"
)
RULE_TIGHTER = _expectations(
    "an expectation is tightened: fewer values, closer bounds, more rows, critical instead of warning",
    _SAFE,
    _CONSUMERS,
    "what was promised still holds",
)
RULE_LOOSER = _expectations(
    "a critical expectation is loosened: more values, wider bounds, a warning only",
    _BREAKING,
    _CONSUMERS,
    "rows may have values that it ruled out, which readers need not handle so far",
)
RULE_OTHER = _expectations(
    "a critical expectation checks another column or other rows",
    _BREAKING,
    _CONSUMERS,
    "whether it still promises what it did is unknown",
)
WARNING_CHANGED = _expectations(
    "an expectation that only warns is changed or removed",
    _SAFE,
    _CONSUMERS,
    "a warning is no promise: rows that break it were always delivered",
)
