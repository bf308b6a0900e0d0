"""Small JSON files of a lake that hold one record each."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake

Record = TypeVar("Record", bound=BaseModel)


def write_record(lake: Lake, key: str, record: BaseModel, *, indent: int | None = 2) -> None:
    """Writes ``record`` to ``key``, atomically; on one line if ``indent`` is None."""
    lake.files.write(key, record.model_dump_json(indent=indent).encode() + b"\n")


def find_record(lake: Lake, key: str, kind: type[Record]) -> Record | None:
    """The record at ``key``; None if it is missing, damaged or of another version."""
    try:
        return kind.model_validate_json(lake.files.read(key) or b"")
    except ValidationError:
        return None


def read_record(lake: Lake, key: str, kind: type[Record], *, remedy: str) -> Record | None:
    """The record at ``key``; None if it is missing.

    Raises:
        LakeError: it is damaged; the text ends with ``remedy``.
    """
    text = lake.files.read(key)
    if text is None:
        return None
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise LakeError(f"{lake.shown(key)} is damaged: {error.errors()[0]['msg']}; {remedy}") from error
