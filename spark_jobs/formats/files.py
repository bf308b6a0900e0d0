"""Files of records, of any format."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES
from spark_jobs.formats.file_rows import FileRow
from spark_jobs.formats.input_file import InputFile
from spark_jobs.formats.schema import Schema

if TYPE_CHECKING:
    from spark_jobs.formats.json_files import Block


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

    def rows(self, file: InputFile, block: "Block | None" = None) -> Iterator[FileRow]:
        """The rows of ``file`` in its order; and one for each part that could not be read.

        Args:
            file: the file.
            block: the part of a file of JSON that is read; None: all. Other files are read whole, with their first
                block.

        Raises:
            OSError: the file cannot be opened or read.
        """
        # Imported here: each loads libraries that the others do not need.
        if self.encoding.format.is_json:
            from spark_jobs.formats.json_files import read_json  # noqa: PLC0415

            return read_json(file, self.encoding, self.max_bytes, block)
        if block and block.start:
            return iter(())
        match self.encoding.format:
            case RecordFormat.CSV:
                from spark_jobs.formats.csv_text import read_csv  # noqa: PLC0415

                return read_csv(file, self.encoding, self.max_bytes)
            case RecordFormat.TEXT:
                from spark_jobs.formats.text_patterns import read_text  # noqa: PLC0415

                return read_text(file, self.encoding, self.max_bytes)
            case RecordFormat.AVRO:
                from spark_jobs.formats.avro_files import read_avro  # noqa: PLC0415

                return read_avro(file, self.schema)
            case RecordFormat.PARQUET:
                from spark_jobs.formats.parquet_files import read_parquet  # noqa: PLC0415

                return read_parquet(file)
            case other:
                raise ValueError(f"{other} is no format of files")
