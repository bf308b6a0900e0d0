"""Values that are not JSON to JSON text, in Python workers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from spark_jobs.config.topics import is_pattern, regex_of, value_of

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_jobs.formats.decoding import Decoded, Decoder

VALUE, ORIGIN = "value", "origin"
TEXT, VERDICT, REASON = "text", "decode_verdict", "decode_reason"
ADDED = (TEXT, VERDICT, REASON)
"""The columns that :func:`decode` adds."""
_MOST_CHARACTERS = 16 * 1024 * 1024
"""Of text in one batch that goes back to Java: what a few bytes become can be many times as long."""


def decode(records: DataFrame, decoders: "Mapping[str, Decoder]") -> DataFrame:
    """Decodes the column ``value`` of records that have a decoder.

    Schemas that were never seen are fetched by the worker that meets them, within the batch. While the registry is away
    the batch waits, up to ``registry.patience``; then it fails.

    Args:
        records: ``value`` (binary: a record as received; null where it has none), ``origin`` (string: its topic), and
            any other columns.
        decoders: by topic, see :func:`spark_jobs.formats.sources.decoders`. What they hold travels to the workers
            with the tasks, as Kafka's options do, and is shown neither in plans nor in logs.

    Returns:
        The columns of ``records``, and ``text`` (string: JSON; null if there is no value, no decoder for it, or none
        that can be decoded),
        ``decode_verdict`` (string: null, ``record_too_large`` or one of ``contracts.events.DECODE_VERDICTS``),
        ``decode_reason`` (string: why, for people).
    """
    added = [StructField(name, StringType()) for name in ADDED]

    def decoded(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for batch in batches:
            yield from _decoded(batch, decoders)

    # Not a function of one column: Arrow allows no more than 2 GiB of text in a batch, and only here it can be divided.
    return records.mapInArrow(decoded, StructType([*records.schema.fields, *added]))


def comes_from_topics(topics: Iterable[str]) -> Column:
    """Whether the column ``origin`` is a topic that ``topics`` mean; else false."""
    origin, found = F.col(ORIGIN), list(topics)
    is_named = origin.isin([topic for topic in found if not is_pattern(topic)])
    patterns = [topic for topic in found if is_pattern(topic)]
    return is_named | origin.rlike(rf"^(?:{regex_of(patterns)})\z") if patterns else is_named


def raw_text(value: Column) -> Column:
    """Bytes as text for ``raw``: decoded as ISO-8859-1, so that encoding it the same way restores them."""
    return F.decode(value, "ISO-8859-1")


def _decoded(batch: "pa.RecordBatch", decoders: "Mapping[str, Decoder]") -> Iterator["pa.RecordBatch"]:
    from spark_jobs.formats.decoding import Decoded  # noqa: PLC0415 in the worker, and only for these formats

    first, characters, found = 0, 0, list[Decoded]()
    origins = batch.column(ORIGIN).to_pylist()
    of_origin = {origin: value_of(origin, decoders) for origin in set(origins)}
    for value, origin in zip(batch.column(VALUE), origins, strict=True):
        decoder = of_origin[origin]
        content = value.as_py() if decoder else None
        one = decoder.decode(content) if decoder and content is not None else Decoded(None)
        found.append(one)
        characters += len(one.text or "")
        if characters > _MOST_CHARACTERS:
            yield _with(batch.slice(first, len(found)), found)
            first, characters, found = first + len(found), 0, []
    yield _with(batch.slice(first), found)


def _with(batch: "pa.RecordBatch", found: list["Decoded"]) -> "pa.RecordBatch":
    import pyarrow as pa  # noqa: PLC0415 in the worker

    added = [pa.array([one[place] for one in found], pa.string()) for place in range(len(ADDED))]
    return pa.RecordBatch.from_arrays([*batch.columns, *added], [*batch.schema.names, *ADDED])
