"""Moving pictures of the docs: frames with captions, written as one animated WebP, which GitHub shows in the page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageDraw, ImageEnhance, ImageFont

MOST_BYTES = 1_500_000
"""The largest file that a reader of the README should wait for."""
_WIDTH = 960
_BAND, _MARGIN = 38, 16
_CARD = 26
"""Padding of the card with the title."""
_CAPTION_SIZE, _TITLE_SIZE = 17, 26
_INK, _PAPER = (255, 255, 255), (27, 36, 48)
_TITLE_S = 3.0
_DIMMED = 0.55
_QUALITIES = (85, 70, 55, 40)


@dataclass(frozen=True)
class Frame:
    """A picture (PNG) with a ``caption`` below it, shown for some ``seconds``."""

    picture: bytes
    caption: str
    seconds: float


def write_moving(title: str, frames: Sequence[Frame], file: Path) -> None:
    """Writes ``frames`` as an endless loop that begins with a still picture with the ``title``.

    The quality is the highest one at which the file has no more than :data:`MOST_BYTES`.

    Raises:
        ValueError: there is no such quality.
    """
    shown = list(_joined(frames))
    first, *rest = [_captioned(frame) for frame in shown]
    durations = [round(1000 * seconds) for seconds in (_TITLE_S, *(frame.seconds for frame in shown))]
    for quality in _QUALITIES:
        written = BytesIO()
        _titled(first, title).save(
            written,
            format="WEBP",
            save_all=True,
            append_images=[first, *rest],
            duration=durations,
            loop=0,
            quality=quality,
            method=3,
            allow_mixed=True,
        )
        if written.tell() <= MOST_BYTES:
            file.write_bytes(written.getvalue())
            return
    raise ValueError(
        f"{file.name}: {len(shown)} frames are {written.tell():,} bytes at the lowest quality, and {MOST_BYTES:,} is "
        "the most; take fewer frames"
    )


def _joined(frames: Sequence[Frame]) -> Iterator[Frame]:
    """``frames``, with neighbours that look alike as one."""
    before = frames[0]
    for frame in frames[1:]:
        if (frame.picture, frame.caption) == (before.picture, before.caption):
            before = replace(before, seconds=before.seconds + frame.seconds)
        else:
            yield before
            before = frame
    yield before


def _captioned(frame: Frame) -> Image.Image:
    """The picture, as wide as all of them, over a band with its caption."""
    picture = Image.open(BytesIO(frame.picture)).convert("RGB")
    height = round(picture.height * _WIDTH / picture.width)
    image = Image.new("RGB", (_WIDTH, height + _BAND), _PAPER)
    image.paste(picture.resize((_WIDTH, height), Image.Resampling.LANCZOS))
    place = (_MARGIN, height + _BAND // 2)
    ImageDraw.Draw(image).text(place, frame.caption, _INK, ImageFont.load_default(_CAPTION_SIZE), anchor="lm")
    return image


def _titled(image: Image.Image, title: str) -> Image.Image:
    """``image``, dimmed, behind a card with the ``title``."""
    still = ImageEnhance.Brightness(image).enhance(_DIMMED)
    draw, font = ImageDraw.Draw(still), ImageFont.load_default(_TITLE_SIZE)
    middle = (still.width // 2, (still.height - _BAND) // 2)
    left, top, right, bottom = draw.textbbox(middle, title, font, anchor="mm", align="center")
    draw.rounded_rectangle((left - _CARD, top - _CARD, right + _CARD, bottom + _CARD), radius=12, fill=_PAPER)
    draw.text(middle, title, _INK, font, anchor="mm", align="center")
    return still
