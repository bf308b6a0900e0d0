"""A command in a terminal: its output, recorded with the times, and the lines that the terminal showed then."""

import codecs
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 16
_CONTROL = re.compile(r"(\r|\n|\x1b\[\d*[AK]|\x1b\[\?\d+[hl])")
"""The control sequences of rich, besides colors: ends of lines, up, erase, and whether the cursor is seen."""
_BROKEN_OFF = re.compile(r"\x1b(\[[?;\d]*)?$")
_UP, _ERASE = "A", "K"


@dataclass(frozen=True)
class Piece:
    """Output that arrived ``at`` seconds after the start."""

    at: float
    text: str


def record(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, columns: int, rows: int
) -> list[Piece]:
    """Runs ``command`` in ``folder``, in a terminal of this size, and returns its output.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    started = time.monotonic()
    with subprocess.Popen(
        command, cwd=folder, env=dict(environment), stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        pieces = list(_read(ours, started))
    os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, "".join(piece.text for piece in pieces))
    return pieces


def _read(terminal: int, started: float) -> Iterator[Piece]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while True:
        try:
            data = os.read(terminal, _CHUNK)
        except OSError:  # how Linux says that nobody has the terminal open any more
            return
        if not data:
            return
        yield Piece(time.monotonic() - started, decoder.decode(data))


class Screen:
    """The lines of a terminal, with their colors as they were sent. None ever leaves it at the top.

    It knows what rich sends: a line is erased before it is written again, and longer lines than the terminal has
    columns are not redrawn.
    """

    def __init__(self) -> None:
        self.lines = [""]
        self._row = 0
        self._left = ""

    def write(self, text: str) -> None:
        """Shows ``text``; a control sequence may continue in the next one."""
        text = self._left + text
        broken_off = _BROKEN_OFF.search(text)
        self._left = broken_off[0] if broken_off else ""
        for part in _CONTROL.split(text.removesuffix(self._left)):
            if part == "\n":
                self._move(1)
            elif _CONTROL.fullmatch(part) is None:
                self.lines[self._row] += part
            elif part.endswith(_UP):
                self._move(-int(part[2:-1] or 1))
            elif part.endswith(_ERASE):
                self.lines[self._row] = ""

    def _move(self, rows: int) -> None:
        self._row = max(0, self._row + rows)
        if self._row == len(self.lines):
            self.lines.append("")
