"""Filming a page: pictures of it, taken one after the other, as a moving picture of the docs."""

from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Locator, Page

from infra.docs.moving import Frame, write_moving
from tests.support.browser import PICTURES

_SIZE = {"width": 1260, "height": 820}
"""Small enough to be read at the width of the README, wide enough for all columns of Streams."""
_SCROLL = """(place, share) => {
    const page = place.ownerDocument.scrollingElement;
    page.scrollTop += (place.getBoundingClientRect().top - 20) * share;
}"""
_SHARES = (0.12, 0.3, 0.45, 0.5, 0.6, 1.0)
"""Of the way that is left: slowly, then fast, then slowly."""
_STEP_S = 1 / 12


@dataclass
class Film:
    """Frames of ``page``."""

    page: Page
    frames: list[Frame] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_viewport_size(_SIZE)  # type: ignore[arg-type] # a dict of two numbers

    def take(self, caption: str, seconds: float) -> None:
        """Takes a picture that is shown for ``seconds``."""
        self.frames.append(Frame(self.page.screenshot(), caption, seconds))

    def scroll_to(self, place: Locator, caption: str, seconds: float) -> None:
        """Scrolls until ``place`` is at the top, or the page at its end, and stays there for ``seconds``."""
        for share in _SHARES:
            place.evaluate(_SCROLL, share)
            self.take(caption, _STEP_S)
        self.take(caption, seconds)

    def write(self, name: str, title: str) -> None:
        """Writes the film for the docs, if there is a folder for them."""
        if PICTURES:
            write_moving(title, self.frames, Path(PICTURES) / f"{name}.webp")
