"""Protobuf schemas: .proto text compiled at run time, by Protobuf's own compiler.

The compiler comes as a package (grpcio-tools). A parser of one's own would have to follow every edition of the
language; this one cannot differ from what producers compile with. It runs as a process of its own, once per schema and
worker, so that a schema that crashes it does no harm.
"""

import base64
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from spark_jobs.errors import EnvironmentMissingError
from spark_jobs.formats.proto_built_in import BUILT_IN
from spark_jobs.formats.refusal import incompatible, invalid
from spark_jobs.formats.schema import Schema

_MAIN = "adloom_main.proto"
_TIMEOUT_S = 60
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_IMPORT = re.compile(r"(?:^|;|\})\s*import\s+(?:public\s+|weak\s+)?[\"']([^\"']+)[\"']\s*(?=;)")


def imports_of(text: str) -> list[str]:
    """The imports of a .proto file."""
    return _IMPORT.findall(_COMMENT.sub(" ", text))


class CompiledSchema:
    """The messages of a Protobuf schema."""

    def __init__(self, schema: Schema) -> None:
        """Compiles ``schema``.

        Raises:
            Refused: with ``incompatible_schema``: it does not compile.
            EnvironmentMissingError: the compiler is not installed.
        """
        self._name, self._pool = schema.name, descriptor_pool.DescriptorPool()
        files = descriptor_pb2.FileDescriptorSet()
        try:
            files.ParseFromString(_compile(schema))
            for file in files.file:
                self._pool.AddSerializedFile(file.SerializeToString())
            self._main = next(file for file in files.file if file.name == _MAIN)
        except (DecodeError, TypeError, StopIteration) as error:
            raise incompatible(f"{schema.name} does not compile: {error}") from None

    def at(self, place: tuple[int, ...]) -> Descriptor:
        """The message that indexes lead to: of the file, then of the messages within it, in their order.

        A map field makes a message of its own. Producers in Java do not count it among the messages within another,
        those in Python do. Where both ways lead to a message, and not to the same, which one is meant is unknown.

        Raises:
            Refused: none fits, or two do.
        """
        found = {name for counts_maps in (False, True) if (name := self._name_at(place, counts_maps=counts_maps))}
        if not found:
            raise invalid(f"{self._name} has no message at the indexes {list(place)}")
        if len(found) > 1:
            raise incompatible(
                f"the indexes {list(place)} in {self._name} mean {' or '.join(sorted(found))}, by whether the producer "
                "counts map fields; name the message in the settings"
            )
        return self._found(found.pop())

    def _name_at(self, place: tuple[int, ...], *, counts_maps: bool) -> str | None:
        messages, parts, found = list(self._main.message_type), [self._main.package], None
        for index in place:
            if not 0 <= index < len(messages):
                return None
            found = messages[index]
            parts.append(found.name)
            messages = [inner for inner in found.nested_type if counts_maps or not inner.options.map_entry]
        return ".".join(filter(None, parts)) if found and not found.options.map_entry else None

    def named(self, name: str) -> Descriptor:
        """The message ``name``, full or within the file's package; the first one if ``name`` is empty.

        Raises:
            Refused: it is missing.
        """
        if not name:
            return self.at((0,))
        for full in (name, f"{self._main.package}.{name}"):
            try:
                return self._found(full)
            except KeyError:
                continue
        raise incompatible(f"{self._name} has no message {name}")

    def _found(self, name: str) -> Descriptor:
        found: Descriptor = self._pool.FindMessageTypeByName(name)
        return found


def message_class(descriptor: Descriptor) -> type[Message]:
    """The class of a message."""
    found: type[Message] = GetMessageClass(descriptor)
    return found


def _compile(schema: Schema) -> bytes:
    """The serialized descriptors of the schema and all that it imports."""
    with tempfile.TemporaryDirectory(prefix="adloom-protoc-") as place:
        folder, out = Path(place) / "in", Path(place) / "out"
        compiled = descriptor_pb2.FileDescriptorSet()
        for name, text in (*BUILT_IN.items(), *schema.imports, (_MAIN, schema.text)):
            if descriptor := _compiled_already(text):
                descriptor.name = name
                compiled.file.append(descriptor)
            else:
                _write(schema, folder, name, text)
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}"]
        if compiled.file:
            (Path(place) / "compiled").write_bytes(compiled.SerializeToString())
            command.append(f"--descriptor_set_in={place}/compiled")
        command += ["--include_imports", f"--descriptor_set_out={out}", _MAIN]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
        if "No module named" in done.stderr:
            raise EnvironmentMissingError(
                f"Protobuf schemas need the package grpcio-tools, which {sys.executable} lacks: install adloom with "
                "all of its packages"
            )
        if done.returncode or not out.is_file():
            why = _complaint(done.stderr.replace(f"{folder}/", "").replace(_MAIN, schema.name))
            raise incompatible(f"{schema.name} does not compile: {why or f'exit code {done.returncode}'}")
        return out.read_bytes()


def _compiled_already(text: str) -> Any:
    """The descriptor that ``text`` holds in base64: so some clients register it, and some registries keep it so.

    Returns:
        A FileDescriptorProto; None if ``text`` is the source.
    """
    try:
        descriptor = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text.strip(), validate=True))
    except (ValueError, DecodeError):
        return None
    return descriptor if descriptor.name else None


def _write(schema: Schema, folder: Path, name: str, text: str) -> None:
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise incompatible(f"{schema.name} imports {name!r}, which is no relative path")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _complaint(printed: str) -> str:
    """The message of the compiler, without its warnings."""
    lines = [line.strip() for line in printed.splitlines() if not re.match(r"WARNING: |[WI]\d{4} |.*: warning: ", line)]
    return " ".join(lines)[:500]
