"""`make demo` as a moving picture: the output of a real run, faster than it was, and then scrolled through."""

import io
import os
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.text import Text

from infra.docs.moving import Frame
from infra.docs.terminal import Piece, Screen, record

if TYPE_CHECKING:
    from playwright.sync_api import Page

TITLE = "make demo\na day of events: generated, joined, validated, reported"
_CHECKOUT = Path(__file__).resolve().parents[2]
_COMMAND = ("make", "demo")
_LEFT_OUT = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "JDK_JAVA_OPTIONS")
"""Of the environment: by those of make the inner one would say where it works; tests set the one of Java."""
_SHOWN_AS = "~/adloom"
"""The folder of the checkout."""
_COLUMNS, _ROWS = 100, 28
_TALL = 60
"""More rows than the progress of a run takes: rich leaves out what a terminal has no room for."""
_SHOWN_S, _FASTER, _LONGEST_S = 1 / 8, 8, 15
"""How long a frame of the run is shown, how much faster than it was; more so, if the film were longer than this."""
_STEP, _STEP_S, _READ_S = 2, 1 / 12, 4.0


def record_demo() -> list[Piece]:
    """Runs `make demo` in this checkout; its output.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    return record(_COMMAND, _CHECKOUT, {**environment, "TERM": "xterm-256color"}, columns=_COLUMNS, rows=_TALL)


def demo_frames(page: "Page", pieces: Sequence[Piece]) -> Iterator[Frame]:
    """The frames of the run that printed ``pieces``, drawn in ``page``."""
    minutes, seconds = divmod(round(pieces[-1].at), 60)
    faster = max(_FASTER, ceil(pieces[-1].at / _LONGEST_S))
    ran = f"A run of {minutes} min {seconds} s, {faster} times as fast"
    screen = Screen()
    screen.write(f"$ {' '.join(_COMMAND)}\n")
    waiting = list(pieces)
    for tick in range(round(pieces[-1].at / (faster * _SHOWN_S)) + 1):
        while waiting and waiting[0].at <= tick * faster * _SHOWN_S:
            screen.write(waiting.pop(0).text)
        yield Frame(_draw(page, _lines(screen)[-_ROWS:]), ran, _SHOWN_S)
    for piece in waiting:
        screen.write(piece.text)
    yield from _scrolled(page, _lines(screen))


def _scrolled(page: "Page", lines: list[Text]) -> Iterator[Frame]:
    """From the top to the end; a while where reading begins and ends, and at each screenful."""
    last = max(0, len(lines) - _ROWS)
    for top in range(0, last + _STEP, _STEP):
        is_stop = top % (_ROWS - _STEP) == 0 or top >= last
        picture = _draw(page, lines[min(top, last) :][:_ROWS])
        yield Frame(picture, "What it printed, scrolled through", _READ_S if is_stop else _STEP_S)


def _lines(screen: Screen) -> list[Text]:
    """The lines of ``screen`` as a terminal shows them, long ones broken."""
    decoder = AnsiDecoder()
    shown = (decoder.decode_line(line.replace(str(_CHECKOUT), _SHOWN_AS)) for line in screen.lines)
    return [piece for line in shown for piece in line.divide(range(_COLUMNS, len(line), _COLUMNS))]


def _draw(page: "Page", lines: Sequence[Text]) -> bytes:
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in [*lines, *[Text()] * (_ROWS - len(lines))]:
        console.print(line, no_wrap=True, crop=True)
    page.set_content(f"<body style='margin:0'>{console.export_svg(title=' '.join(_COMMAND))}")
    return page.locator("svg").first.screenshot()
