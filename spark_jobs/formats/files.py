"""Files of rows, of any format."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES
from spark_jobs.formats.file_rows import FileRow
from spark_jobs.formats.schema import Schema


@dataclass(frozen=True)
class FileReader:
    """Reads files of one encoding. It can be pickled.

    Attributes:
        encoding: of the files.
        schema: of Avro, the schema to read rows as; None: each file's own.
        max_bytes: longer rows of text are not read.
    """

    encoding: Encoding
    schema: Schema | None = None
    max_bytes: int = DEFAULT_MAX_RECORD_BYTES

    def rows(self, file: Path) -> Iterator[FileRow]:
        """The rows of ``file`` in its order, each as JSON text; and one for each part that could not be read.

        Raises:
            OSError: the file cannot be opened or read.
        """
        # Imported here: each loads libraries that the others do not need.
        match self.encoding.format:
            case RecordFormat.CSV:
                from spark_jobs.formats.csv_text import read_csv  # noqa: PLC0415

                return read_csv(file, self.encoding, self.max_bytes)
            case RecordFormat.AVRO:
                from spark_jobs.formats.avro_files import read_avro  # noqa: PLC0415

                return read_avro(file, self.schema)
            case RecordFormat.PARQUET:
                from spark_jobs.formats.parquet_files import read_parquet  # noqa: PLC0415

                return read_parquet(file)
            case other:
                raise ValueError(f"{other} is no format of files of rows")
