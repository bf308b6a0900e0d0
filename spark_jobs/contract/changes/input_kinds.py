"""Kinds of change of what comes in: the contract itself, sources, mappings, events, each with its verdict and why."""

from spark_jobs.contract.changes.kind import Whom, group
from spark_jobs.contract.compatibility import Compatibility

_SAFE, _BREAKING = Compatibility.SAFE, Compatibility.BREAKING
_PRODUCERS, _CONSUMERS, _BOTH = Whom.PRODUCERS, Whom.CONSUMERS, Whom.BOTH
IDENTITY = (
    *("event_type", "event_id", "event_time", "user_id", "is_last", "impression_id"),
    *("order_id", "revokes", "campaign_id"),
)
"""The fields that decide which rows there are, and which belong together; the others are only carried along."""

_itself = group("The contract itself")
NAME = _itself("the name changes", _BREAKING, _BOTH, "tools and people find the contract by its name")
OWNER = _itself("the owner changes", _SAFE, _BOTH, "the data stay as they are; others answer for them")

_sources = group("Sources")
SOURCE_ADDED = _sources(
    "a source is added", _SAFE, _BOTH, "the records of the other sources stay what they were; new ones come in"
)
SOURCE_REMOVED = _sources(
    "a source is removed",
    _BREAKING,
    _PRODUCERS,
    "its records are not read any more, those that wait unread included, or belong to no source (no_source)",
)
INPUT_ADDED = _sources("a source reads one more topic", _SAFE, _PRODUCERS, "nothing was read from there before")
INPUT_REMOVED = _sources(
    "a source reads a topic or a folder no longer",
    _BREAKING,
    _PRODUCERS,
    "what is sent there is not read any more; unread records are lost",
)
ORDER = _sources(
    "a source comes before another one that read the same topic or folder",
    _BREAKING,
    _BOTH,
    "the first source that fits a record wins; which records it takes from the other one is unknown",
)
ENCODING = _sources(
    "a setting changes that decides how the bytes of a record are read",
    _BREAKING,
    _PRODUCERS,
    "records in the former form are misread or quarantined",
)
FORMAT = _sources(
    "the format of a source changes", _BREAKING, _PRODUCERS, "records in the former format are quarantined"
)
WHEN_CHANGED = _sources(
    "the condition `when` of a source changes",
    _BREAKING,
    _BOTH,
    "whether it still takes every record that it took is unknown; the others are quarantined (no_source) or go to "
    "another source",
)
WHEN_DROPPED = _sources(
    "the condition `when` is dropped from a source that no other one comes after",
    _SAFE,
    _PRODUCERS,
    "it takes what it took, and records that no source meant before",
)
EACH = _sources(
    "the list `each` of a source changes, or is given or left out",
    _BREAKING,
    _BOTH,
    "what one event is changes: other records are quarantined, and ids mean others",
)
ALSO = _sources(
    "other sources take the records of a source, too",
    _BREAKING,
    _CONSUMERS,
    "a record becomes more events, or fewer, so counts over both times mix the two",
)
UNKNOWN_QUARANTINE = _sources(
    "`unknown` becomes quarantine",
    _BREAKING,
    _PRODUCERS,
    "records with a field that the mapping does not read were good, and are quarantined (unknown_field)",
)
UNKNOWN_KEEP = _sources(
    "`unknown` becomes keep", _SAFE, _PRODUCERS, "records with unknown fields are no longer quarantined"
)
MAY_LACK = _sources(
    "events of a source may lack a field that was required",
    _BREAKING,
    _CONSUMERS,
    "the column may be null from now on; readers counted on a value",
)
LENIENT = _sources(
    "a source becomes lenient about a field or kept column",
    _SAFE,
    _BOTH,
    "records that give no valid value for it were quarantined, and are good without it",
)
STRICT = _sources(
    "a source is lenient no longer",
    _BREAKING,
    _PRODUCERS,
    "records that give no valid value for it were good, and are quarantined (invalid_…)",
)
MUST_HAVE = _sources(
    "events of a source may no longer lack a field",
    _BREAKING,
    _PRODUCERS,
    "records without it were good, and are quarantined (missing_…)",
)

_mappings = group("Mappings and kept columns")
IDENTITY_CHANGED = _mappings(
    f"another expression gives {', '.join(IDENTITY[:-1])} or {IDENTITY[-1]}; for is_last, also the first or none",
    _BREAKING,
    _CONSUMERS,
    "the field decides which rows there are and which belong together: the same event could count as another one, so "
    "duplicates, sessions, attributions and campaigns no longer fit those before",
)
LET_CHANGED = _mappings(
    "another expression gives a text that is read as JSON (`let`)",
    _BREAKING,
    _BOTH,
    "whatever is read from it may be another: the event, its time, its user",
)
VALUE_CHANGED = _mappings(
    "another expression gives any other field",
    _BREAKING,
    _BOTH,
    "records that give no valid value for it are quarantined (invalid_…), and rows from before keep the former value, "
    "so a sum over both mixes the two",
)
MAPPING_UNDER_QUARANTINE = _mappings(
    'an expression changes in a source with `unknown = "quarantine"`',
    _BREAKING,
    _PRODUCERS,
    "a field of the record that the mapping reads no longer is unknown, and its records are quarantined; whether there "
    "is one is unknown",
)
FIELD_MAPPED = _mappings(
    "a field gets an expression and had none",
    _BREAKING,
    _BOTH,
    "records that give no valid value for it were good, and are quarantined (invalid_…); with `revokes` or `order_id`, "
    "other conversions count, so revenue over both times mixes the two",
)
FIELD_UNMAPPED = _mappings(
    "a field no longer has an expression",
    _BREAKING,
    _CONSUMERS,
    "it is null, or its default, from now on; if its event type needs it, such events are quarantined",
)
KEPT = _mappings(
    "a source keeps the text at a path as one more column",
    _SAFE,
    _CONSUMERS,
    "readers that name their columns see no difference",
)
KEPT_COMPUTED = _mappings(
    "a source keeps one more column of another type, or of another expression than a path",
    _BREAKING,
    _PRODUCERS,
    "records that give no such value were good, and are quarantined (invalid_kept_column)",
)
NOT_KEPT = _mappings(
    "a source keeps a column no longer", _BREAKING, _CONSUMERS, "its events have null there from now on"
)
KEPT_TYPE = _mappings(
    "a kept column has another type", _BREAKING, _CONSUMERS, "readers, and the tables themselves, have the former one"
)
KEPT_PATH = _mappings(
    "the text at another path gives a kept column",
    _SAFE,
    _CONSUMERS,
    "the column keeps its name and type; rows from before keep the former value",
)
KEPT_EXPRESSION = _mappings(
    "another expression gives a kept column",
    _BREAKING,
    _BOTH,
    "rows from before keep the former value, and records that give no value of its type are quarantined "
    "(invalid_kept_column)",
)

_events = group("Events and records")
FIELD_ADDED = _events("an optional field is added", _SAFE, _PRODUCERS, "records without it stay good")
FIELD_OF_NEW_TYPE = _events(
    "a field is added that only events of a new type have",
    _SAFE,
    _PRODUCERS,
    "no event of that type was good before, so none is quarantined for it",
)
NEEDED_FIELD_ADDED = _events(
    "a required field is added", _BREAKING, _PRODUCERS, "records without it were good, and are quarantined"
)
FIELD_REMOVED = _events("a field is removed", _BREAKING, _BOTH, "what producers send there is ignored from now on")
FIELD_TYPE = _events(
    "a field has another type, or belongs to other event types",
    _BREAKING,
    _BOTH,
    "records with the former form are quarantined or ignored, and readers expect the former type",
)
REQUIRED = _events(
    "a field becomes required", _BREAKING, _PRODUCERS, "records without it were good, and are quarantined"
)
OPTIONAL = _events(
    "a required field may be missing",
    _BREAKING,
    _CONSUMERS,
    "the column may be null from now on; readers counted on a value",
)
FIELD_TIGHTER = _events(
    "a limit of a field is tightened", _BREAKING, _PRODUCERS, "values that were good are quarantined (invalid_…)"
)
FIELD_LOOSER = _events("a limit of a field is loosened", _SAFE, _PRODUCERS, "every value that was good stays good")
RECORD_RULE_ADDED = _events(
    "a rule about records is added", _BREAKING, _PRODUCERS, "records that break it were good, and are quarantined"
)
RECORD_RULE_REMOVED = _events(
    "a rule about records is removed", _SAFE, _PRODUCERS, "every record that was good stays good"
)
RECORD_TIGHTER = _events(
    "a limit of a record is tightened, such as ingest.max_record_bytes",
    _BREAKING,
    _PRODUCERS,
    "records beyond the new limit were good, and are quarantined",
)
RECORD_LOOSER = _events("a limit of a record is loosened", _SAFE, _PRODUCERS, "every record that was good stays good")
