"""Fields to a verdict: every record is kept, with the first rule that it breaks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.sections import IngestSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract import events
from spark_jobs.contract.nobody import pattern_of
from spark_jobs.contract.record_places import RECEIVED_META
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest import decode, parse
from spark_jobs.ingest.elements import IS_FURTHER
from spark_jobs.ingest.fields import Field, Given, Reason, as_text, quoted
from spark_jobs.ingest.meta import of_records
from spark_jobs.ingest.records import Records

_EPOCH = "1970-01-01 00:00:00"
_LABEL, _GIVEN = "reason_label", "reason_given"
"""Columns in between: where the record breaks its rule, and what it has there."""

_Rule = tuple[str, Column, Reason | None]
"""A verdict, the condition for it, and the reason for people, if the verdict does not say it all."""


def judge(records: DataFrame, settings: Settings, carried: Sequence[str] = ()) -> DataFrame:
    """Every non-blank record of ``records`` with its verdict and fields.

    Args:
        records: ``raw``, ``source`` (strings), ``ingest_time`` (timestamp: of the batch), ``received_time`` (timestamp:
            when the record was received; its event cannot be later); if their metadata is more than their place,
            ``received_meta`` (string, :mod:`spark_jobs.ingest.meta`); if some are not JSON, what
            :func:`spark_jobs.ingest.decode.decode` adds; and ``requeued_from`` (timestamp), if these are records of
            bronze (:func:`spark_jobs.ingest.quarantine.as_received`).
        settings: the sources with their mappings, and the limits.
        carried: further columns of ``records``, to be returned as they are.

    Returns:
        The columns of ``bronze/events``, one for each column that a source keeps, and those ``carried``. ``raw`` is as
        received; if that is not UTF-8, it is decoded as ISO-8859-1, so encoding it again gives the original bytes.
        Fields that belong to another event type are null, and so is a user that ``ingest.nobody`` names.
    """
    how = Records(settings)
    left_out = _LeftOut(how)
    rules = [*_decode_rules(records), *_record_rules(how), *_event_rules(how, settings.ingest, left_out)]
    judged = _with_given(how.read(parse.drop_blank(records)).withColumn("verdict", _first_broken(rules)), rules)
    # What is UTF-8 is known by now, except of records that are not JSON.
    is_text = F.lit(False) if parse.IS_DECODED in judged.columns else F.col("is_utf8")
    raw = F.when(is_text | F.is_valid_utf8("raw"), F.col("raw")).otherwise(
        F.decode(F.col("raw").cast("binary"), "ISO-8859-1")
    )
    if IS_FURTHER in judged.columns and "requeued_from" not in records.columns:
        # The first row of the record has it; what is in quarantine needs its own, to be judged again.
        raw = F.when(~F.col(IS_FURTHER) | (F.col("verdict") != events.OK), raw)
    kept = {name: left_out.without(name, field.value) for name, field in how.kept.items()}
    fields = {name: replace(field, value=left_out.without(name, field.value)) for name, field in how.fields.items()}
    reason = left_out.reason(_reason(rules))
    columns = {"raw": raw, "reason": reason, **_of_quarantine(judged), **_values(fields, settings), **kept}
    return judged.withColumns(columns).select(*BRONZE_EVENTS.column_names, *kept, *carried)


class _LeftOut:
    """The fields and kept columns that records give no valid value for, where their source is lenient about it."""

    def __init__(self, how: Records) -> None:
        self._how = how
        self._found: dict[str, tuple[Column, Reason]] = {}

    def broken(self, name: str, is_broken: Column, reason: Reason) -> Column:
        """``is_broken``, but where it is left out instead."""
        is_lenient = self._how.is_lenient(name)
        if is_lenient is None:
            return is_broken
        kind = next((kind for kind, names in events.TYPE_FIELDS.items() if name in names), None)
        is_read = F.lit(True) if kind is None else self._how.fields["event_type"].value == kind
        self._found[name] = F.coalesce(is_broken & is_read, F.lit(False)) & is_lenient, reason
        return is_broken & ~is_lenient

    def without(self, name: str, value: Column) -> Column:
        """``value``, or null if it is left out."""
        return F.when(~self._found[name][0], value) if name in self._found else value

    def reason(self, reason: Column) -> Column:
        """``reason``, or why something is left out of an event that is good otherwise."""
        if not self._found:
            return reason
        each = [F.when(is_out, as_text(why)) for is_out, why in self._found.values()]
        found = F.concat_ws("; ", *each)
        return F.when(F.col("verdict") != events.OK, reason).when(found != "", F.concat(F.lit(events.LEFT_OUT), found))


def _of_quarantine(judged: DataFrame) -> dict[str, Column]:
    never = F.lit(None).cast("timestamp")
    return {
        # Costs nothing in the rows that are ok, and only the others are judged again.
        "received_time": F.when(F.col("verdict") != events.OK, F.col("received_time")),
        RECEIVED_META: F.when(F.col("verdict") != events.OK, of_records(judged)),
        "requeued_from": F.col("requeued_from") if "requeued_from" in judged.columns else never,
    }


def _decode_rules(records: DataFrame) -> list[_Rule]:
    if decode.VERDICT not in records.columns:
        return []
    verdict, reason = F.col(decode.VERDICT), F.col(decode.REASON)
    return [(name, verdict == name, reason) for name in (*events.DECODE_VERDICTS, events.INVALID_UTF8)]


def _record_rules(how: Records) -> list[_Rule]:
    not_utf8_either = F.when(~F.is_valid_utf8("raw"), F.lit(events.NOT_UTF8_EITHER))
    return [
        (events.RECORD_TOO_LARGE, F.col("is_too_large"), not_utf8_either),
        (events.INVALID_UTF8, ~F.col("is_utf8"), None),
        *[
            (verdict, broken, how.no_list if verdict == events.NO_SOURCE else None)
            for verdict, broken in how.form_rules
        ],
        *_unknown_rule(how.unknown_fields),
    ]


def _unknown_rule(unknown: Column | None) -> list[_Rule]:
    if unknown is None:
        return []
    reason = F.concat(F.lit("the mapping does not read "), F.concat_ws(", ", unknown))
    return [(events.UNKNOWN_FIELD, F.size(unknown) > 0, reason)]


def _event_rules(how: Records, settings: IngestSettings, left_out: _LeftOut) -> list[_Rule]:
    fields = how.fields
    optional = partial(_optional, fields, left_out)
    time = fields["event_time"]
    too_late = F.col("received_time") + F.expr(f"INTERVAL {settings.max_future_skew.total_seconds():.3f} SECOND")
    is_no_time = time.is_wrong | (time.value <= F.lit(_EPOCH).cast("timestamp"))
    return [
        *_needed(fields, "event_type", ~fields["event_type"].value.isin(*events.EVENT_TYPES)),
        *_needed(fields, "event_id", _is_no_id(fields["event_id"])),
        *_needed(fields, "event_time", is_no_time),
        (events.EVENT_TIME_TOO_OLD, time.value < F.lit(settings.earliest_event_time), time.reason),
        (events.EVENT_TIME_IN_FUTURE, time.value > too_late, time.reason),
        *_needed(fields, "user_id", _is_no_id(fields["user_id"]), unless=how.may_lack("user_id")),
        *optional("is_last", fields["is_last"].is_wrong),
        *(rule for name in events.TEXT_LIMITS for rule in optional(name, fields[name].is_wrong)),
        *_of_type(
            events.IMPRESSION,
            [
                *_needed(fields, "campaign_id", _is_no_id(fields["campaign_id"])),
                *_needed(fields, "ad_id", _is_no_id(fields["ad_id"])),
                *optional("cost_micros", _is_no_amount("cost_micros", fields)),
            ],
            fields,
        ),
        *_of_type(events.CLICK, _needed(fields, "impression_id", _is_no_id(fields["impression_id"])), fields),
        *_of_type(events.ACTIVITY, optional("data", fields["data"].is_wrong), fields),
        *_of_type(events.CONVERSION, _conversion_rules(fields, optional), fields),
        *_kept_rule(how.kept, left_out),
    ]


def _conversion_rules(fields: dict[str, Field], optional: Callable[[str, Column], list[_Rule]]) -> list[_Rule]:
    currency, revokes = fields["currency"], fields["revokes"]
    is_no_code = ~currency.value.rlike(rf"^{events.CURRENCY_PATTERN}\z") | currency.is_wrong
    # What takes itself back would count as nothing, and as a conversion.
    names_itself = revokes.value == fields["event_id"].value
    return [
        *_needed(fields, "conversion_type", _is_no_id(fields["conversion_type"])),
        *_needed(fields, "value_micros", _is_no_amount("value_micros", fields)),
        *_needed(fields, "currency", is_no_code, unless=fields["value_micros"].value == 0),
        *optional("order_id", _is_no_id(fields["order_id"])),
        *optional("revokes", _is_no_id(revokes) | names_itself),
    ]


def _kept_rule(kept: dict[str, Field], left_out: _LeftOut) -> list[_Rule]:
    if not kept:
        return []
    fields = list(kept.values())
    # A verdict has one reason, so all columns that are kept are one rule.
    broken = [
        F.coalesce(left_out.broken(name, field.is_wrong, field.reason), F.lit(False)) for name, field in kept.items()
    ]
    reason = F.coalesce(*[F.when(one, as_text(field.reason)) for one, field in zip(broken, fields, strict=True)])
    return [(events.INVALID_KEPT_COLUMN, reduce(or_, broken), reason)]


def _needed(fields: dict[str, Field], name: str, is_broken: Column, unless: Column | None = None) -> list[_Rule]:
    field = fields[name]
    is_missing = field.is_missing if unless is None else field.is_missing & ~unless
    return [(events.missing(name), is_missing, field.reason), (events.invalid(name), is_broken, field.reason)]


def _optional(fields: dict[str, Field], left_out: _LeftOut, name: str, is_broken: Column) -> list[_Rule]:
    reason = fields[name].reason
    return [(events.invalid(name), left_out.broken(name, is_broken, reason), reason)]


def _is_no_id(field: Field) -> Column:
    has_length = F.char_length(field.value).between(1, events.MAX_ID_CHARACTERS)
    return ~(has_length & ~F.contains(field.value, F.lit("\0"))) | field.is_wrong


def _is_no_amount(name: str, fields: dict[str, Field]) -> Column:
    return ~fields[name].value.between(0, events.AMOUNT_LIMITS[name]) | fields[name].is_wrong


def _of_type(event_type: str, rules: Sequence[_Rule], fields: dict[str, Field]) -> list[_Rule]:
    is_type = fields["event_type"].value == event_type
    return [(verdict, is_type & broken, reason) for verdict, broken, reason in rules]


def _first_broken(rules: Sequence[_Rule]) -> Column:
    (verdict, broken, _), *rest = rules
    chain = F.when(broken, F.lit(verdict))
    for verdict, broken, _ in rest:
        chain = chain.when(broken, F.lit(verdict))
    return chain.otherwise(F.lit(events.OK))


def _with_given(judged: DataFrame, rules: Sequence[_Rule]) -> DataFrame:
    """``judged`` with what the record has where it breaks its rule, if that is one place: for :func:`_reason`.

    The text for people is then put together once and not for each rule: as code it would be larger than all the rules,
    and a start would take two seconds longer to compile.
    """
    places: dict[str, tuple[list[str], Column]] = {}
    for verdict, _, reason in rules:
        if isinstance(reason, Given):
            places.setdefault(reason.label, ([], reason.text))[0].append(verdict)
    label = text = F.when(F.col("verdict") == events.OK, F.lit(None).cast("string"))
    for name, (verdicts, given) in places.items():
        is_here = F.col("verdict").isin(*verdicts)
        label, text = label.when(is_here, F.lit(name)), text.when(is_here, given.cast("string"))
    return judged.withColumns({_LABEL: label, _GIVEN: text})


def _reason(rules: Sequence[_Rule]) -> Column:
    """Why the verdict is not ok, where the verdict alone does not say it."""
    chain = F.when(F.col(_LABEL).isNotNull(), quoted(F.col(_LABEL), F.col(_GIVEN)))
    for verdict, _, reason in rules:
        if isinstance(reason, Column):
            chain = chain.when(F.col("verdict") == verdict, reason)
    return chain


def _values(fields: dict[str, Field], settings: Settings) -> dict[str, Column]:
    """The fields; if the record is not ok, as many as could be read."""
    values = {name: field.value for name, field in fields.items()}
    values["user_id"] = _person(values["user_id"], settings.ingest.nobody)
    values["is_last"] = F.coalesce(values["is_last"], F.lit(False))
    for name, most in events.TEXT_LIMITS.items():
        text, length = values[name], F.char_length(values[name])
        cut = F.when(length > 0, F.substring(text, 1, most)) if name in events.CUT_FIELDS else None
        values[name] = F.when(length.between(1, most), text) if cut is None else cut
    event_type = values["event_type"]
    for kind, names in events.TYPE_FIELDS.items():
        for name in names:
            values[name] = F.when(event_type == kind, values[name])
    return values


def _person(user: Column, nobody: Sequence[str]) -> Column:
    """``user``, or null if it is one of the ids ``nobody``."""
    if not nobody:
        return user
    # A pattern, not lower(): see spark_jobs.ingest.fields.own_time.
    return F.when(user.rlike(rf"^{pattern_of(nobody)}\z"), F.lit(None)).otherwise(user)
