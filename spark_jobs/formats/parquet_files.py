"""Parquet files, read in batches of rows: memory depends on the batch and page size, not on the file size.

Values become the same text as in Avro (:mod:`spark_jobs.formats.json_text`). Columns without a value are there as null.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.formats import json_text
from spark_jobs.formats.file_rows import FileRow
from spark_jobs.formats.input_file import InputFile
from spark_jobs.formats.refusal import Refused, invalid

_BATCH_ROWS = 1024
_BUFFER_BYTES = 1024 * 1024
_DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError, Refused)
_MICROS_IN = {"s": 1_000_000, "ms": 1000, "us": 1}
_MS_PER_DAY = 86_400_000


def read_parquet(file: InputFile) -> Iterator[FileRow]:
    """The rows of ``file`` in its order.

    Yields:
        Rows, and one for each part that could not be read.

    Raises:
        OSError: the file cannot be opened or read.
    """
    with file.open("rb") as content:
        try:
            opened = pq.ParquetFile(
                content, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
            )
            sizes = [opened.metadata.row_group(group).num_rows for group in range(opened.num_row_groups)]
        except _DAMAGE as error:
            yield _unreadable("all", error)
            return
        first = 0
        for group, rows in enumerate(sizes):
            yield from _group(opened, group, first, first + rows)
            first += rows


def _group(opened: pq.ParquetFile, group: int, first: int, end: int) -> Iterator[FileRow]:
    """The rows of a row group; if it is damaged, what comes before the damage."""
    try:
        for batch in opened.iter_batches(_BATCH_ROWS, row_groups=[group], use_threads=False):
            yield from _batch(batch, first)
            first += batch.num_rows
    except _DAMAGE as error:
        yield _unreadable(f"rows={first}-{end - 1}", error)


def _batch(batch: pa.RecordBatch, first: int) -> Iterator[FileRow]:
    try:
        for number, text in enumerate(_row_texts(batch), first):
            yield FileRow(f"row={number}", text)
    except _DAMAGE as error:
        if batch.num_rows == 1:
            yield _unreadable(f"row={first}", error)
            return
        # One bad text spoils its column: by themselves the other rows can be read.
        for number in range(batch.num_rows):
            yield from _batch(batch.slice(number, 1), first + number)


def _row_texts(batch: pa.RecordBatch) -> list[str]:
    names = [f"{json_text.quoted(name)}:" for name in batch.schema.names]
    return _objects(names, [_texts(column) for column in batch.columns], batch.num_rows)


def _objects(keys: list[str], columns: list[list[str]], rows: int) -> list[str]:
    if not keys:
        return ["{}"] * rows
    return [
        f"{{{','.join(key + text for key, text in zip(keys, row, strict=True))}}}" for row in zip(*columns, strict=True)
    ]


def _texts(values: pa.Array) -> list[str]:
    """The JSON text of each value."""
    kind = values.type
    for is_kind, write in _WRITERS:
        if is_kind(kind):
            return write(values)
    # Of a type that has none, as of a column without values: the others count.
    return [json_text.NULL] * len(values)


def _each(write: Callable[..., str], values: list[object]) -> list[str]:
    return [json_text.NULL if value is None else write(value) for value in values]


def _plain(write: Callable[..., str]) -> Callable[[pa.Array], list[str]]:
    return lambda values: _each(write, values.to_pylist())


def _instants(values: pa.Array) -> list[str]:
    write = json_text.instant if values.type.tz else json_text.local_instant
    return _units(values, write, values.type.unit)


def _times(values: pa.Array) -> list[str]:
    return _units(values, json_text.time_of_day, values.type.unit)


def _units(values: pa.Array, write: Callable[[int], str | None], unit: str) -> list[str]:
    factor = _MICROS_IN.get(unit)
    integers = values.cast(pa.int32() if pa.types.is_time32(values.type) else pa.int64()).to_pylist()
    return _each(lambda value: write(value * factor if factor else value // 1000) or str(value), integers)


def _durations(values: pa.Array) -> list[str]:
    """As ISO 8601 in seconds, as in ``PT1.5S``."""
    per_second = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[values.type.unit]

    def write(count: int) -> str:
        whole, part = divmod(abs(count), per_second)
        fraction = f".{part:0{len(str(per_second)) - 1}}".rstrip("0").rstrip(".") if part else ""
        return f'"{"-" if count < 0 else ""}PT{whole}{fraction}S"'

    return _each(write, values.cast(pa.int64()).to_pylist())


def _views(values: pa.Array) -> list[str]:
    """Views of texts, bytes and lists, as what they are views of."""
    if pa.types.is_string_view(values.type):
        return _texts(values.cast(pa.large_string()))
    if pa.types.is_binary_view(values.type):
        return _texts(values.cast(pa.large_binary()))
    return _texts(values.cast(pa.large_list(values.type.value_type)))


def _dates(values: pa.Array) -> list[str]:
    if pa.types.is_date32(values.type):
        days = values.cast(pa.int32()).to_pylist()
    else:
        days = [value if value is None else value // _MS_PER_DAY for value in values.cast(pa.int64()).to_pylist()]
    return _each(lambda value: json_text.date(value) or str(value), days)


def _structs(values: pa.Array) -> list[str]:
    keys = [f"{json_text.quoted(field.name)}:" for field in values.type]
    texts = _objects(keys, [_texts(column) for column in values.flatten()], len(values))
    return [text if there else json_text.NULL for text, there in zip(texts, _there(values), strict=True)]


def _lists(values: pa.Array) -> list[str]:
    if pa.types.is_fixed_size_list(values.type):
        values = values.cast(pa.list_(values.type.value_type))
    first, bounds = _bounds(values)
    texts = _texts(values.values.slice(first, bounds[-1] - first))
    return _cut(values, bounds, lambda start, end: json_text.array(texts[start - first : end - first]))


def _maps(values: pa.Array) -> list[str]:
    first, bounds = _bounds(values)
    keys = _texts(values.keys.slice(first, bounds[-1] - first))
    items = _texts(values.items.slice(first, bounds[-1] - first))
    if not (pa.types.is_string(values.type.key_type) or pa.types.is_large_string(values.type.key_type)):
        keys = [key if key.startswith('"') else json_text.quoted(key) for key in keys]

    def write(start: int, end: int) -> str:
        # Of equal keys the last wins: JSON must not have both.
        both = dict(zip(keys[start - first : end - first], items[start - first : end - first], strict=True))
        return f"{{{','.join(f'{key}:{text}' for key, text in both.items())}}}"

    return _cut(values, bounds, write)


def _bounds(values: pa.Array) -> tuple[int, list[int]]:
    """Where the first list begins among the values of all, and where each begins and the last ends."""
    bounds: list[int] = values.offsets.to_pylist() or [0]
    return bounds[0], bounds


def _cut(values: pa.Array, bounds: list[int], write: Callable[[int, int], str]) -> list[str]:
    return [
        write(bounds[row], bounds[row + 1]) if there else json_text.NULL for row, there in enumerate(_there(values))
    ]


def _there(values: pa.Array) -> list[bool]:
    return list(values.is_valid().to_pylist())


def _unreadable(place: str, error: Exception) -> FileRow:
    if isinstance(error, Refused):
        return FileRow(place, None, error.verdict, error.reason)
    # Parquet's own complaints have no number; those of the system do.
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    refused = invalid(f"not readable as Parquet: {' '.join(str(error).split())[:300]}")
    return FileRow(place, None, refused.verdict, refused.reason)


_IS = pa.types
_WRITERS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[str]]]] = [
    (_IS.is_null, lambda values: [json_text.NULL] * len(values)),
    (_IS.is_boolean, _plain(lambda value: "true" if value else "false")),
    (_IS.is_integer, _plain(str)),
    (_IS.is_floating, _plain(json_text.number)),
    (lambda kind: _IS.is_string(kind) or _IS.is_large_string(kind), _plain(json_text.quoted)),
    (
        lambda kind: _IS.is_binary(kind) or _IS.is_large_binary(kind) or _IS.is_fixed_size_binary(kind),
        _plain(json_text.binary),
    ),
    (_IS.is_decimal, _plain(lambda value: f'"{value:f}"')),
    (_IS.is_timestamp, _instants),
    (_IS.is_time, _times),
    (_IS.is_date, _dates),
    (_IS.is_dictionary, lambda values: _texts(values.dictionary_decode())),
    (_IS.is_duration, _durations),
    (
        lambda kind: any(
            is_view(kind)
            for is_view in (_IS.is_string_view, _IS.is_binary_view, _IS.is_list_view, _IS.is_large_list_view)
        ),
        _views,
    ),
    (_IS.is_struct, _structs),
    (_IS.is_map, _maps),
    (lambda kind: _IS.is_list(kind) or _IS.is_large_list(kind) or _IS.is_fixed_size_list(kind), _lists),
    (lambda kind: isinstance(kind, pa.BaseExtensionType), lambda values: _texts(values.storage)),
]
"""The writers of the columns of each type; the first that fits."""
