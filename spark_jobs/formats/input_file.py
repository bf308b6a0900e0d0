"""A file of input, wherever it lies."""

from typing import BinaryIO, Literal, Protocol


class InputFile(Protocol):
    """A file of input: a path, or an object in a store."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        ...

    def open(self, mode: Literal["rb"]) -> BinaryIO:
        """Opens it.

        Raises:
            OSError: it cannot be opened.
        """
        ...
