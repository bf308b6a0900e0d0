"""Values of Kafka records within other bytes: behind a header, or compressed."""

import io
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES, INVALID_ENCODING, INVALID_UTF8, RECORD_TOO_LARGE
from spark_jobs.formats.decoding import Decoded
from spark_jobs.formats.text_lines import BYTE_ORDER_MARK, DAMAGE, LONGEST_MARK, decompressed

if TYPE_CHECKING:
    from spark_jobs.formats.decoding import Decoder

_ZLIB: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


@dataclass(frozen=True)
class WrappedDecoder:
    """Decodes what is left of a value without its first bytes, and decompressed.

    Attributes:
        inner: decodes what is left; None: it is JSON.
        skip: how many bytes come before it.
        is_compressed: whether it may be compressed by gzip, zstd, bzip2 or zlib, which its first bytes say.
        max_bytes: longer values are not decoded.
    """

    inner: "Decoder | None"
    skip: int = 0
    is_compressed: bool = False
    max_bytes: int = DEFAULT_MAX_RECORD_BYTES

    def decode(self, value: bytes) -> Decoded:
        """See :class:`spark_jobs.formats.decoding.Decoder`."""
        if len(value) < self.skip:
            return Decoded(None, INVALID_ENCODING, f"the value ends after {len(value)} bytes, within its header")
        content = value[self.skip :]
        if self.is_compressed:
            try:
                content = _decompressed(content, self.max_bytes + 1)
            except (*DAMAGE, OSError) as error:
                return Decoded(None, INVALID_ENCODING, f"the value cannot be decompressed: {error}")
        if self.inner:
            return self.inner.decode(content)
        if len(content) > self.max_bytes:
            return Decoded(None, RECORD_TOO_LARGE, f"the value has more than {self.max_bytes} bytes")
        try:
            return Decoded(content.removeprefix(BYTE_ORDER_MARK).decode("utf-8").strip(" \t\r\n"))
        except UnicodeDecodeError as error:
            return Decoded(None, INVALID_UTF8, f"the value is not UTF-8: byte {error.start}")


def _decompressed(content: bytes, most: int) -> bytes:
    """The first ``most`` bytes of ``content``, decompressed if it is compressed."""
    if not content.startswith(_ZLIB):
        return decompressed(io.BytesIO(content), content[:LONGEST_MARK]).read(most)
    stream = zlib.decompressobj()
    found = stream.decompress(content, most)
    if not stream.eof and len(found) < most:
        raise EOFError("it is cut off")
    return found
