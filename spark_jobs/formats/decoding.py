"""Decodes values of Kafka records: with a registry in its wire format, without one by a schema that is given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from spark_jobs.config.encoding import RecordFormat
from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES, RECORD_TOO_LARGE, UNKNOWN_SCHEMA
from spark_jobs.errors import SettingsError
from spark_jobs.formats.refusal import Refused, incompatible
from spark_jobs.formats.schema import AVRO, PROTOBUF, Schema
from spark_jobs.formats.schema_store import SchemaStore
from spark_jobs.formats.wire import HEADER_BYTES, message_place, schema_id

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from spark_jobs.formats.proto_schema import CompiledSchema

Read = Callable[[bytes, int], str]
"""From a value and where its bytes begin to its JSON text."""
_KINDS = {RecordFormat.AVRO: AVRO, RecordFormat.PROTOBUF: PROTOBUF}
_MOST_READERS = 1000
_readers: dict[tuple[object, ...], Read | Refused] = {}
"""Of this process: a decoder is unpickled for every task, and building a reader takes far longer than using it."""


class Decoded(NamedTuple):
    """A value as JSON text, or the verdict that it got instead and why."""

    text: str | None
    verdict: str | None = None
    reason: str | None = None


class Decoder(Protocol):
    """Turns values to JSON text. It can be pickled; what it needs is built where it is used."""

    def decode(self, value: bytes) -> Decoded:
        """``value`` as JSON text, or a verdict.

        Raises:
            RegistryError: the registry refuses to answer or has been away for too long.
            LakeError: the lake's schemas cannot be read or written.
        """
        ...


class _WithReaders:
    """Keeps the readers that this decoder has used: a look into the process's takes longer than decoding."""

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_used"}

    def _reader(self, key: object, build: Callable[[], Read]) -> Read:
        used: dict[object, Read] = self.__dict__.setdefault("_used", {})
        read = used.get(key)
        if read is None:
            read = _known((self, key), build)
            if len(used) >= _MOST_READERS:
                used.clear()
            used[key] = read
        return read


@dataclass(frozen=True)
class PlainDecoder(_WithReaders):
    """Decodes values that are nothing but Avro or Protobuf, by the schema in ``schema``.

    Attributes:
        message: of Protobuf, the message's name; empty: the first one in the file.
        max_bytes: longer values are not decoded.
    """

    format: RecordFormat
    schema: Schema
    message: str = ""
    max_bytes: int = DEFAULT_MAX_RECORD_BYTES

    def decode(self, value: bytes) -> Decoded:
        """See :class:`Decoder`."""
        return decoded(value, self.max_bytes, self._read)

    def _read(self, value: bytes) -> str:
        return self._reader(None, self._build)(value, 0)

    def check(self) -> None:
        """Checks the schema.

        Raises:
            Refused: it is invalid.
        """
        self._reader(None, self._build)

    def _build(self) -> Read:
        if self.format is RecordFormat.AVRO:
            return _avro(self.schema, None)
        return _proto(lambda compiled: compiled.named(self.message), self.schema)


@dataclass(frozen=True)
class RegistryDecoder(_WithReaders):
    """Decodes values in the registry's wire format.

    Attributes:
        schemas: where writer schemas come from.
        reader: the schema to read values as; None: each as it was written. For Avro it resolves the writer's. For
        Protobuf
            it takes the place of the writer's, whose fields it need not have: the message of the same name is used.
        message: of Protobuf, the message's name; empty: the one that the value names.
        max_bytes: longer values are not decoded.
    """

    format: RecordFormat
    schemas: SchemaStore
    reader: Schema | None = None
    message: str = ""
    max_bytes: int = DEFAULT_MAX_RECORD_BYTES

    def decode(self, value: bytes) -> Decoded:
        """See :class:`Decoder`."""
        return decoded(value, self.max_bytes, self._read)

    def _read(self, value: bytes) -> str:
        number = schema_id(value)
        if self.format is RecordFormat.AVRO:
            return self._reader(number, lambda: _avro(self._written(number), self.reader))(value, HEADER_BYTES)
        place, at = message_place(value)
        return self._reader((number, place), lambda: self._message(number, place))(value, at)

    def _written(self, number: int) -> Schema:
        schema = self.schemas.get(number)
        if schema.kind != _KINDS[self.format]:
            raise incompatible(f"{schema.name} is of the type {schema.kind}, not {_KINDS[self.format]}")
        return schema

    def _message(self, number: int, place: tuple[int, ...]) -> Read:
        written = self._written(number)
        if self.reader is None:
            return _proto(
                lambda compiled: compiled.named(self.message) if self.message else compiled.at(place), written
            )
        from spark_jobs.formats.proto_schema import CompiledSchema  # noqa: PLC0415 only with this format

        name = self.message or CompiledSchema(written).at(place).full_name
        return _proto(lambda compiled: compiled.named(name), self.reader)


def decoder(
    format_: RecordFormat | str,
    *,
    schemas: SchemaStore | None = None,
    schema: Schema | None = None,
    message: str = "",
    max_bytes: int = DEFAULT_MAX_RECORD_BYTES,
) -> Decoder:
    """The decoder of a source's values.

    Args:
        format_: ``avro`` or ``protobuf``.
        schemas: the registry's, for values in its wire format; None: plain values.
        schema: the schema of plain values; with a registry, the one to read them as, or None.
        message: the message of Protobuf values; empty: the one that a value in the wire format names, and of plain
            values the first one in the schema.
        max_bytes: longer values get the verdict ``record_too_large``.

    Raises:
        SettingsError: there is neither a registry nor a schema, or the schema is invalid or of another format.
    """
    wanted = RecordFormat(format_)
    if schema and schema.kind != _KINDS[wanted]:
        raise SettingsError(f"{schema.name} is of the type {schema.kind}; format {wanted} needs {_KINDS[wanted]}")
    if schema:
        plain = PlainDecoder(wanted, schema, message, max_bytes)
        try:
            plain.check()
        except Refused as refused:
            raise SettingsError(f"{refused.reason}; correct the file") from None
        if schemas is None:
            return plain
    if schemas is None:
        raise SettingsError(f"format {wanted} needs a schema file, or a schema registry (registry.url)")
    return RegistryDecoder(wanted, schemas, schema, message, max_bytes)


def decoded(value: bytes, max_bytes: int, read: Callable[[bytes], str]) -> Decoded:
    """The text that ``read`` makes of ``value``, or a verdict: that of its refusal, or of more than ``max_bytes``.

    Other errors of ``read`` are raised.
    """
    if len(value) > max_bytes:
        return Decoded(None, RECORD_TOO_LARGE, f"the value has {len(value)} bytes, more than {max_bytes}")
    try:
        return Decoded(read(value))
    except Refused as refused:
        return Decoded(None, refused.verdict, refused.reason)


def _known(key: tuple[object, ...], build: Callable[[], Read]) -> Read:
    """The reader that this process has for ``key``; built, or found to be impossible, the first time."""
    found = _readers.get(key)
    if found is None:
        try:
            found = build()
        except Refused as refused:
            if refused.verdict == UNKNOWN_SCHEMA:
                # The registry may have it later.
                raise
            found = refused
        if len(_readers) >= _MOST_READERS:
            _readers.clear()
        _readers[key] = found
    if isinstance(found, Refused):
        raise Refused(found.verdict, found.reason)
    return found


def _avro(written: Schema, reader: Schema | None) -> Read:
    from spark_jobs.formats.avro import AvroReader  # noqa: PLC0415 only with this format
    from spark_jobs.formats.avro_schema import SchemaError, parse_schema  # noqa: PLC0415

    try:
        return AvroReader(parse_schema(written), parse_schema(reader) if reader else None).decode
    except SchemaError as error:
        raise incompatible(str(error)) from None


def _proto(choose: "Callable[[CompiledSchema], Descriptor]", schema: Schema) -> Read:
    from spark_jobs.formats.proto import ProtoReader  # noqa: PLC0415 only with this format
    from spark_jobs.formats.proto_schema import CompiledSchema  # noqa: PLC0415

    return ProtoReader(choose(CompiledSchema(schema))).decode
