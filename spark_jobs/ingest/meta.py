"""The metadata of a record, what is known of it besides its value: JSON text, for paths from ``$meta``.

::

    {"topic": "t", "partition": 0, "offset": 5, "key": "u7", "time": "2026-03-01T12:00:00.000Z",
     "headers": {"ce_id": "e1", "ce_type": "click"}}
    {"file": "s3a://logs/dt=2026-03-01/a.jsonl"}

Keys and headers are bytes: those that are not UTF-8 are read as ISO-8859-1, as ``raw`` is. Of headers of one name the
last counts. Where nothing but the place is known, the text is put together where it is read: by a mapping, and for
records that do not fit, which keep it in bronze, so that a later mapping may read it.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.record_places import IN_FILE, IN_RECORD, IN_TOPIC, RECEIVED_META
from spark_jobs.ingest.in_python.meta import EARLIEST_TIME, LATEST_TIME


def of_records(records: DataFrame) -> Column:
    """The metadata of ``records``: what their source gave, or else what their place says."""
    of_place = F.to_json(F.struct(*_of_place(F.col("source"))))
    return F.coalesce(RECEIVED_META, of_place) if RECEIVED_META in records.columns else of_place


def of_kafka(source: Column, key: Column, headers: Column, time: Column) -> Column:
    """The metadata of a record of Kafka.

    Args:
        source: ``<topic>/<partition>/<offset>``.
        key: its key (binary).
        headers: its headers (array of structs of ``key``, a string, and ``value``, binary).
        time: of the record; null if it has none (:func:`kafka_time`).
    """
    named = F.when(F.size(headers) > 0, F.map_from_entries(F.transform(headers, _pair)))
    written = F.date_format(F.when(time < F.lit(LATEST_TIME), time), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    more = [_text(key).alias("key"), written.alias("time"), named.alias("headers")]
    return F.to_json(F.struct(*_of_place(source), *more))


def kafka_time(timestamp: Column) -> Column:
    """The ``timestamp`` of a record of Kafka, or null if that is none.

    Records written by brokers before 0.10 have none: it reads as a time before 1970. A producer that gives seconds
    where Kafka wants milliseconds dates its records to January 1970.
    """
    return F.when(timestamp >= F.lit(EARLIEST_TIME), timestamp)


def _of_place(source: Column) -> list[Column]:
    place = F.regexp_replace(source, IN_RECORD, "")
    parts = [F.regexp_extract(place, IN_TOPIC, number) for number in (1, 2, 3)]
    topic, partition, offset = (F.nullif(part, F.lit("")) for part in parts)
    return [
        topic.alias("topic"),
        partition.cast("bigint").alias("partition"),
        offset.cast("bigint").alias("offset"),
        F.when(F.contains(place, F.lit("#")), F.regexp_replace(place, IN_FILE, "")).alias("file"),
    ]


def _pair(header: Column) -> Column:
    return F.struct(header["key"], _text(header["value"]))


def _text(value: Column) -> Column:
    return F.when(F.is_valid_utf8(value.cast("string")), value.cast("string")).otherwise(F.decode(value, "ISO-8859-1"))
