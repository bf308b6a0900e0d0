"""The registry's wire format: a zero byte, the schema's id in four bytes, for Protobuf the message's place, the value.

Source: `Confluent, "Wire format"
<https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format>`_.
"""

from spark_jobs.formats.avro_binary import integer
from spark_jobs.formats.refusal import invalid, unknown

HEADER_BYTES = 5
_MOST_INDEXES = 100
_MOST_ID = 2**31 - 1


def schema_id(value: bytes) -> int:
    """The id of the schema that ``value`` was written with.

    Raises:
        Refused: it does not begin as the wire format does, or names what is no id.
    """
    if not value.startswith(b"\0"):
        begins = f"begins with the byte {value[0]}" if value else "is empty"
        raise invalid(f"the value {begins}, not with the zero byte of the registry's wire format")
    if len(value) < HEADER_BYTES:
        raise invalid(f"the value ends after {len(value)} bytes, within the id of its schema")
    found = int.from_bytes(value[1:HEADER_BYTES], "big")
    if found > _MOST_ID:
        # Registries take it for no id, and some of them answer as if they were none.
        raise unknown(f"the value names schema {found}, and the ids of a registry end at {_MOST_ID}")
    return found


def message_place(value: bytes) -> tuple[tuple[int, ...], int]:
    """Which message of a Protobuf schema the value is: the indexes that lead to it; and where its bytes begin.

    Raises:
        Refused: they are cut off, or are no indexes.
    """
    try:
        count, at = integer(value, HEADER_BYTES)
        if not count:
            # How the first message is written, which is the usual one.
            return (0,), at
        if not 0 < count <= _MOST_INDEXES:
            raise invalid(f"the value has {count} message indexes")
        indexes = []
        for _ in range(count):
            index, at = integer(value, at)
            indexes.append(index)
    except IndexError:
        raise invalid(f"the value ends after {len(value)} bytes, within its message indexes") from None
    return tuple(indexes), at
