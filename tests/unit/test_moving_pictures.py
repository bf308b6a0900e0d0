"""Moving pictures of the docs: what a terminal shows, how frames become a film, and how large it may be."""

import io
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageSequence
from rich.console import Console
from rich.live import Live

from infra.docs import moving
from infra.docs.demo_picture import _CHECKOUT, _COLUMNS, _lines
from infra.docs.moving import Frame, write_moving
from infra.docs.terminal import Screen, record


def _shown(*pieces: str) -> list[str]:
    screen = Screen()
    for piece in pieces:
        screen.write(piece)
    return screen.lines


def test_what_rich_redraws_is_shown_once() -> None:
    sent = io.StringIO()
    console = Console(file=sent, force_terminal=True, width=40, color_system=None)
    console.print("before")
    with Live("one\n1 row", console=console, auto_refresh=False) as live:
        live.update("one\n10 rows", refresh=True)
        console.print("meanwhile")
        live.update("one\n100 rows\nand more", refresh=True)
    console.print("after")
    lines = _shown(*sent.getvalue().replace("\n", "\r\n").splitlines(keepends=True))
    assert [line.rstrip() for line in lines] == ["before", "meanwhile", "one", "100 rows", "and more", "after", ""]


def test_a_control_sequence_may_come_in_pieces() -> None:
    assert _shown("old\n\x1b[", "1A\x1b[2", "Knew\x1b", "[1m!") == ["new\x1b[1m!", ""]


def test_long_lines_are_broken_and_the_checkout_has_a_short_name() -> None:
    screen = Screen()
    screen.write(f"\x1b[1mreport\x1b[0m: {_CHECKOUT}/demo\n{'x' * (2 * _COLUMNS + 1)}")
    assert [line.plain for line in _lines(screen)] == ["report: ~/adloom/demo", "x" * _COLUMNS, "x" * _COLUMNS, "x"]


def test_a_command_is_recorded_as_in_a_terminal(tmp_path: Path) -> None:
    script = "import os, sys; print(sys.stdout.isatty(), *os.get_terminal_size(), os.getcwd(), os.environ['who'])"
    pieces = record([sys.executable, "-c", script], tmp_path, {"who": "café"}, columns=77, rows=33)
    assert "".join(piece.text for piece in pieces) == f"True 77 33 {tmp_path} café\r\n"
    assert all(0 < piece.at < 60 for piece in pieces)


def test_a_command_that_fails_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        record([sys.executable, "-c", "print('why'); raise SystemExit(3)"], tmp_path, {}, columns=80, rows=24)
    assert (failed.value.returncode, failed.value.output) == (3, "why\r\n")


def _picture(color: str, size: tuple[int, int] = (480, 300)) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", size, color).save(written, format="PNG")
    return written.getvalue()


def test_a_film_begins_with_its_title_and_shows_each_frame_as_long_as_it_should(tmp_path: Path) -> None:
    red, blue = _picture("#c00000"), _picture("#0000c0")
    frames = [Frame(red, "a", 1.0), Frame(red, "a", 0.5), Frame(blue, "a", 0.25), Frame(blue, "b", 2.0)]
    write_moving("Two colors", frames, tmp_path / "film.webp")
    film: Any  # Pillow's types know neither frames nor the colors of an RGB picture
    with Image.open(tmp_path / "film.webp") as film:
        assert (film.format, film.size, film.info["loop"]) == ("WEBP", (960, 638), 0)
        shown = []
        for frame in ImageSequence.Iterator(film):
            frame.load()
            r, _, b = frame.convert("RGB").resize((1, 1)).tobytes()
            shown.append((r, b, frame.info["duration"]))
    assert [milliseconds for *_, milliseconds in shown] == [3000, 1500, 250, 2000]
    assert [r > b for r, b, _ in shown] == [True, True, False, False]
    assert shown[0][0] < shown[1][0], "the title's picture is dimmed"


def test_a_film_that_is_too_large_loses_quality_or_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = random.Random(7)
    picture = io.BytesIO()
    Image.frombytes("RGB", (96, 60), noise.randbytes(96 * 60 * 3)).resize((960, 600)).save(picture, format="PNG")
    frames = [Frame(picture.getvalue(), "noise", 1.0)]
    write_moving("Noise", frames, tmp_path / "best.webp")
    best = (tmp_path / "best.webp").stat().st_size

    monkeypatch.setattr(moving, "MOST_BYTES", best - 1)
    write_moving("Noise", frames, tmp_path / "worse.webp")
    assert (tmp_path / "worse.webp").stat().st_size < best
    monkeypatch.setattr(moving, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match=r"^none.webp: 1 frames are [\d,]+ bytes .* 1,000 is the most; take fewer"):
        write_moving("Noise", frames, tmp_path / "none.webp")
    assert not (tmp_path / "none.webp").exists()
