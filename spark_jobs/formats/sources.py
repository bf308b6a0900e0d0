"""How the records of the sources in the settings are decoded: by topic, and by set of files."""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_jobs.config.encoding import Encoding, RecordFormat, names_of_files
from spark_jobs.config.folders import Folder, is_match
from spark_jobs.config.settings import Settings
from spark_jobs.formats.csv_text import CsvDecoder
from spark_jobs.formats.decoding import Decoder, decoder
from spark_jobs.formats.files import FileReader
from spark_jobs.formats.schema import Schema, read_schema
from spark_jobs.formats.schema_store import SchemaStore
from spark_jobs.formats.text_patterns import TextDecoder, pattern_of
from spark_jobs.formats.wrapped import WrappedDecoder

_MOST_ROW = 16 * 1024 * 1024


@dataclass(frozen=True)
class FileSet:
    """Files that are read in one way.

    Attributes:
        folder: that they lie in, or below.
        patterns: for their paths below it.
        reader: how they are read.
        origin: of their records; None: any source may mean them.
    """

    folder: Folder
    patterns: tuple[str, ...]
    reader: FileReader
    origin: str | None

    def has(self, file: str) -> bool:
        """Whether it has the file of that location."""
        below = self.folder.below(file)
        return below is not None and is_match(below, self.patterns)


def decoders(settings: Settings, schemas: SchemaStore | None) -> dict[str, Decoder]:
    """By topic, or pattern for topics, what decodes its records; topics of plain JSON have none.

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
        if source.encoding.is_decoded
    }


def set_of(sets: Iterable[FileSet], file: str) -> FileSet | None:
    """The first of ``sets`` that has the file of that location."""
    return next((one for one in sets if one.has(file)), None)


def file_sets(settings: Settings, source: Folder | None) -> tuple[FileSet, ...]:
    """The files that are read, and how.

    Args:
        settings: the sources.
        source: a folder that the settings do not name, in place of those that they name: it has files of JSON, and what
            sources without topics and folders read.

    Raises:
        SettingsError: a schema file cannot be read.
    """
    most, found = settings.ingest.max_record_bytes, dict[tuple[Folder, tuple[str, ...]], FileSet]()
    for one in settings.sources.values():
        folder = one.folder if source is None else source
        if folder and not one.topics and bool(one.path) is (source is None):
            origin = one.origin_of_files if source is None else None
            found.setdefault((folder, one.names), FileSet(folder, one.names, reader_of(one.encoding, most), origin))
    if source:
        names = names_of_files(RecordFormat.JSON)
        reader = reader_of(Encoding(RecordFormat.JSON), most)
        found.setdefault((source, names), FileSet(source, names, reader, None))
    return tuple(found.values())


def reader_of(encoding: Encoding, max_bytes: int) -> FileReader:
    """The reader of files of ``encoding``, whose records have at most ``max_bytes``.

    Longer rows of text are read as well, so that they can be judged again under a higher limit; not all lengths are.

    Raises:
        SettingsError: its schema file cannot be read, or its pattern is none.
    """
    if encoding.format is RecordFormat.TEXT:
        pattern_of(encoding.pattern)
    return FileReader(encoding, _schema(encoding), max(max_bytes, _MOST_ROW))


def _decoder(encoding: Encoding, max_bytes: int, schemas: SchemaStore | None) -> Decoder:
    inner = None if encoding.format.is_json else _of_format(encoding, max_bytes, schemas)
    if inner is None or encoding.skip_bytes or encoding.compressed:
        return WrappedDecoder(inner, encoding.skip_bytes, encoding.compressed, max_bytes)
    return inner


def _of_format(encoding: Encoding, max_bytes: int, schemas: SchemaStore | None) -> Decoder:
    if encoding.format is RecordFormat.CSV:
        return CsvDecoder(encoding, max_bytes)
    if encoding.format is RecordFormat.TEXT:
        pattern_of(encoding.pattern)
        return TextDecoder(encoding, max_bytes)
    return decoder(
        encoding.format,
        schemas=schemas if encoding.in_registry else None,
        schema=_schema(encoding),
        message=encoding.message,
        max_bytes=max_bytes,
    )


def _schema(encoding: Encoding) -> Schema | None:
    return read_schema(encoding.schema_file) if encoding.schema_file else None
