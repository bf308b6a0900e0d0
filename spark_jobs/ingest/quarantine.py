"""The quarantine: records of bronze that did not fit, and those of them that were requeued since.

A requeued record has two rows in bronze: the one as received, with its verdict, and a later one with the verdict ok
whose ``requeued_from`` is the ``ingest_time`` of the first. The two are matched by ``raw``, ``source`` and that time.
Rows that are equal in all three are requeued together, in one commit, so the match is exact for them as well. The only
exception is a row whose ``raw`` is not text: its characters may be those of another record, and it is never requeued.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.contract.events import DECODE_VERDICTS, INVALID_UTF8, OK, RECORD_TOO_LARGE
from spark_jobs.contract.record_places import IN_FILE, IN_RECORD, IN_TOPIC, RECEIVED_META
from spark_jobs.ingest import decode

if TYPE_CHECKING:
    from spark_jobs.formats.decoding import Decoder

BEFORE_VERDICT, BEFORE_SOURCE, BEFORE_PLACE = "before_verdict", "before_source", "before_place"
"""The columns with what a row was when it was received: its verdict, the name of its source, and its ``source``."""
NUMBER = "number"
"""The column with a number of its own for each record that is judged again."""
_BEFORE_REASON = "before_reason"
_BLOCK = "#bytes="
_ISO_8859_1 = "ISO-8859-1"

_CAN_BE_BYTES = r"\A[\x00-\xFF]*\z"


def requeued(bronze: DataFrame) -> DataFrame:
    """The rows of ``bronze`` that were requeued into it."""
    return bronze.where(F.col("requeued_from").isNotNull())


def in_quarantine(bronze: DataFrame) -> DataFrame:
    """The rows of ``bronze`` that did not fit and were not requeued since."""
    rejected = bronze.where(F.col("verdict") != OK).withColumn("can_fit", _can_fit())
    since = requeued(bronze).select("raw", "source", F.col("requeued_from").alias("ingest_time"))
    same = since.withColumn("can_fit", F.lit(True))
    return rejected.join(same, on=["raw", "source", "ingest_time", "can_fit"], how="left_anti").drop("can_fit")


def as_received(
    quarantined: DataFrame, now: Column, decoders: "Mapping[str, Decoder]", folders: Mapping[str, str]
) -> DataFrame:
    """Rows of bronze as the input of :func:`spark_jobs.ingest.judge.judge`.

    This is the one place that makes records of rows. Values of topics whose records are bytes are decoded again. Rows
    of files were decoded when they were read: ``raw`` is their JSON. What could not be read then keeps its verdict.

    Args:
        quarantined: rows that did not fit.
        now: the ``ingest_time`` of the rows to be written (timestamp).
        decoders: by topic, see :func:`spark_jobs.formats.sources.decoders`.
        folders: by regular expression for the place of a file, its origin.

    Returns:
        ``raw`` (string: as received, also if its bytes are not UTF-8), ``source`` (string: of the whole record),
        ``origin`` (string: the topic, or the files of a source's folder; null for other files), ``ingest_time``
        (timestamp: ``now``), ``received_time`` (timestamp: when the record was first received), ``received_meta``
        (string: its metadata, or null), ``requeued_from`` (timestamp), :data:`BEFORE_VERDICT`,
        :data:`BEFORE_SOURCE`, :data:`BEFORE_PLACE` (strings), and what :func:`spark_jobs.ingest.decode.decode` adds.
    """
    records = quarantined.select(
        _raw_as_received().alias("raw"),
        _record_place(F.col("source")).alias("source"),
        _origin(folders).alias("origin"),
        now.alias("ingest_time"),
        # Older versions did not write it down. Its batch is the latest time that it can have been.
        F.coalesce("received_time", "ingest_time").alias("received_time"),
        F.col(RECEIVED_META),
        F.col("ingest_time").alias("requeued_from"),
        F.col("verdict").alias(BEFORE_VERDICT),
        F.col("source_name").alias(BEFORE_SOURCE),
        F.col("source").alias(BEFORE_PLACE),
        F.col("reason").alias(_BEFORE_REASON),
    )
    decoded = _decoded(records, decoders)
    is_unread = F.col(BEFORE_VERDICT).isin(*DECODE_VERDICTS) & _is_file()
    kept = {
        decode.VERDICT: F.when(is_unread, F.col(BEFORE_VERDICT)).otherwise(F.col(decode.VERDICT)),
        decode.REASON: F.when(is_unread, F.col(_BEFORE_REASON)).otherwise(F.col(decode.REASON)),
    }
    return decoded.withColumns(kept).drop(_BEFORE_REASON)


def _decoded(records: DataFrame, decoders: "Mapping[str, Decoder]") -> DataFrame:
    if not decoders:
        return records.withColumns({name: F.lit(None).cast("string") for name in decode.ADDED})
    is_text = F.is_valid_utf8("raw") & F.col("raw").rlike(_CAN_BE_BYTES)
    value = F.when(is_text, F.encode("raw", _ISO_8859_1)).otherwise(F.col("raw").cast("binary"))
    return decode.decode(records.withColumn(decode.VALUE, value), decoders).drop(decode.VALUE)


def _is_file() -> Column:
    return F.contains(F.col("source"), F.lit("#"))


def once_more(judged: DataFrame, *, has_lists: bool) -> DataFrame:
    """The rows of ``judged`` that are what was in quarantine.

    A record that holds several events is judged as a whole each time: of an event in it, only that one is meant. Of a
    record, or an element, that was no list of events when it was received, all are, and only if all of them fit: else
    one that does not. The first of them gets the ``source`` that there was, so that the two are known for the same.

    Args:
        judged: of records from :func:`as_received`, with :data:`BEFORE_PLACE`, and :data:`NUMBER` of each of them.
        has_lists: whether a source has its records in a list.
    """
    before, now = F.col(BEFORE_PLACE), F.col("source")
    if not has_lists:
        return judged.where(now == before)
    is_taken_apart = F.startswith(now, F.concat(before, F.lit("[")))
    of_record = Window.partitionBy(NUMBER)
    is_bad = F.col("verdict") != OK
    rows = judged.where((now == before) | is_taken_apart).withColumns(
        {
            "all_fit": ~F.bool_or(is_bad).over(of_record),
            "place": F.row_number().over(of_record.orderBy(is_bad.desc(), "source")),
        }
    )
    first = F.when(is_taken_apart & (F.col("place") == 1), before).otherwise(now)
    return rows.where(F.col("all_fit") | (F.col("place") == 1)).withColumn("source", first).drop("all_fit", "place")


def _record_place(source: Column) -> Column:
    return F.regexp_replace(source, IN_RECORD, "")


def _origin(folders: Mapping[str, str]) -> Column:
    place = _record_place(F.col("source"))
    topic = F.nullif(F.regexp_extract(place, IN_TOPIC, 1), F.lit(""))
    file = F.regexp_replace(place, IN_FILE, "")
    chain = F.when(~_is_file(), topic)
    for pattern, origin in folders.items():
        chain = chain.when(file.rlike(pattern), F.lit(origin))
    return chain


def _can_fit() -> Column:
    """Whether the record can fit under any settings. Blocks of text files hold many records; other places one each."""
    return F.is_valid_utf8(_raw_as_received()) | ~F.contains(F.col("source"), F.lit(_BLOCK))


def _raw_as_received() -> Column:
    """``raw`` with the bytes of the record, where it may be these bytes as ISO-8859-1 instead of text.

    Without this, a record whose bytes are not UTF-8 would pass as text with other characters. Of records that are too
    large, the reason says which are bytes; older versions gave none, so there all that can be bytes count as bytes.
    """
    is_marked = F.col("reason").isNotNull() | F.col("received_time").isNull()
    is_bytes = (F.col("verdict") == INVALID_UTF8) | ((F.col("verdict") == RECORD_TOO_LARGE) & is_marked)
    in_bytes = F.encode("raw", _ISO_8859_1).cast("string")
    return F.when(is_bytes & F.col("raw").rlike(_CAN_BE_BYTES), in_bytes).otherwise(F.col("raw"))
