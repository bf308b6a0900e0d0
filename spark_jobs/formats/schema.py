"""A schema as text with what it imports: as a registry keeps it, or from a file."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_jobs.errors import SettingsError

AVRO: Final = "AVRO"
PROTOBUF: Final = "PROTOBUF"


@dataclass(frozen=True)
class Schema:
    """A schema.

    Attributes:
        kind: ``AVRO``, ``PROTOBUF``, or another one that the registry knows.
        text: JSON of Avro, or a .proto file.
        imports: name and text of every schema that it needs, directly or not; each after those that it needs itself.
        name: of the schema for people, as in ``schema 7``.
    """

    kind: str
    text: str
    imports: tuple[tuple[str, str], ...] = ()
    name: str = "the schema"

    def to_json(self) -> bytes:
        """As :meth:`from_json` reads it."""
        content = {"type": self.kind, "schema": self.text, "imports": self.imports, "name": self.name}
        return json.dumps(content, indent=2).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "Schema":
        """The text that :meth:`to_json` wrote.

        Raises:
            ValueError: it is something else.
        """
        try:
            found = json.loads(data)
            imports = tuple((str(name), str(text)) for name, text in found["imports"])
            return cls(str(found["type"]), str(found["schema"]), imports, str(found["name"]))
        except (KeyError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(f"not a stored schema: {error}") from error


def read_schema(file: Path) -> Schema:
    """The schema in ``file``: Avro (``.avsc``, ``.json``), or Protobuf (``.proto``) with the files that it imports.

    A .proto file imports others by their path from its own folder, or from one of the folders above it.

    Raises:
        SettingsError: the file has another ending or cannot be read.
    """
    kinds = {".avsc": AVRO, ".json": AVRO, ".proto": PROTOBUF}
    if file.suffix not in kinds:
        raise SettingsError(f"schema file {file}: name it .avsc for Avro or .proto for Protobuf")
    text = _content(file)
    imports = tuple(_imported(text, file.resolve().parent, set())) if file.suffix == ".proto" else ()
    return Schema(kinds[file.suffix], text, imports, f"schema file {file}")


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"schema file {file} cannot be read: {error}") from error


def _imported(text: str, folder: Path, seen: set[str]) -> Iterator[tuple[str, str]]:
    from spark_jobs.formats.proto_schema import imports_of  # noqa: PLC0415 loads Protobuf's compiler

    for name in imports_of(text):
        place = next((above / name for above in (folder, *folder.parents) if (above / name).is_file()), None)
        # What is not found may be one of Protobuf's own; if not, the compiler says so.
        if name not in seen and place:
            seen.add(name)
            content = _content(place)
            yield from _imported(content, folder, seen)
            yield name, content
