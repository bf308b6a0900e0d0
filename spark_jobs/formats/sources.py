"""How the records of the sources in the settings are decoded: by topic, and by folder of files."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import origin_of_files
from spark_jobs.formats.csv_text import CsvDecoder
from spark_jobs.formats.decoding import Decoder, decoder
from spark_jobs.formats.files import FileReader
from spark_jobs.formats.schema import Schema, read_schema
from spark_jobs.formats.schema_store import SchemaStore

_MOST_ROW = 16 * 1024 * 1024
Readers = Mapping[RecordFormat, tuple[FileReader, str | None]]
"""How the files of a folder are read, by their format, and the origin that their records get; files of other formats
are not read."""


def decoders(settings: Settings, schemas: SchemaStore | None) -> dict[str, Decoder]:
    """By topic, what decodes its records; topics of JSON have none.

    Args:
        settings: the sources.
        schemas: writer schemas of the registry; None: there is no registry.

    Raises:
        SettingsError: a schema file cannot be read, or is invalid.
    """
    return {
        topic: _decoder(source.encoding, settings.ingest.max_record_bytes, schemas)
        for source in settings.sources.values()
        for topic in source.topics or (() if source.path else settings.topics)
        if not source.format.is_json and source.format is not RecordFormat.PARQUET
    }


def readers(settings: Settings, folder: Path | None) -> Readers:
    """How files are read that are not JSON Lines.

    Args:
        settings: the sources.
        folder: a source's ``path``; None: a folder that the settings do not name.

    Raises:
        SettingsError: a schema file cannot be read.
    """
    return {
        one.format: (
            reader_of(one, settings.ingest.max_record_bytes),
            origin_of_files(folder, one.format) if folder else None,
        )
        for one in _encodings(settings, folder)
    }


def reader_of(encoding: Encoding, max_bytes: int) -> FileReader:
    """The reader of files of ``encoding``, whose records have at most ``max_bytes``.

    Longer rows of text are read as well, so that they can be judged again under a higher limit; not all lengths are.

    Raises:
        SettingsError: its schema file cannot be read.
    """
    return FileReader(encoding, _schema(encoding), max(max_bytes, _MOST_ROW))


def _encodings(settings: Settings, folder: Path | None) -> Iterator[Encoding]:
    for source in settings.sources.values():
        if source.path == folder and not source.topics and not source.format.is_json:
            yield source.encoding


def _decoder(encoding: Encoding, max_bytes: int, schemas: SchemaStore | None) -> Decoder:
    if encoding.format is RecordFormat.CSV:
        return CsvDecoder(encoding, max_bytes)
    return decoder(
        encoding.format,
        schemas=schemas if encoding.in_registry else None,
        schema=_schema(encoding),
        message=encoding.message,
        max_bytes=max_bytes,
    )


def _schema(encoding: Encoding) -> Schema | None:
    return read_schema(encoding.schema_file) if encoding.schema_file else None
