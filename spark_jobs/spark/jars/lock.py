"""Reads ``jars.lock``, which is next to a ``pom.xml``: the jars Maven resolves from it, each with its SHA-256."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

JAR = "jar"
"""The ending of a jar."""
LOCK, POM = "jars.lock", "pom.xml"
"""The files of a folder that has a lock."""


class LockError(Exception):
    """Raised when jars.lock cannot be used, or does not match its pom.xml."""


@dataclass(frozen=True, order=True)
class Jar:
    """A jar, or an archive of them, in the layout of a Maven repository, and the SHA-256 of its bytes."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str
    ending: str = JAR

    @property
    def coordinates(self) -> str:
        """``group:artifact:version[:classifier[:ending]]``; the classifier of an archive may be empty."""
        parts = [self.group, self.artifact, self.version, self.classifier, "" if self.ending == JAR else self.ending]
        return ":".join(parts).rstrip(":")

    @property
    def name(self) -> str:
        """The file's name."""
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + f".{self.ending}"


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_lock(folder: Path) -> list[Jar]:
    """The jars that ``folder/jars.lock`` lists.

    Raises:
        LockError: it was made from another pom.xml.
    """
    lines = [line.split() for line in (folder / LOCK).read_text().splitlines() if not line.startswith("#")]
    locked = dict(lines)
    if locked.pop(POM) != digest(folder / POM):
        raise LockError(f"{folder}/{LOCK} was made from another {POM}: run `make lock-jars` (needs Maven)")
    return [_parsed(name, sha256) for name, sha256 in locked.items()]


def _parsed(coordinates: str, sha256: str) -> Jar:
    group, artifact, version, classifier, ending = [*coordinates.split(":"), "", ""][:5]
    return Jar(group, artifact, version, classifier, sha256, ending or JAR)
