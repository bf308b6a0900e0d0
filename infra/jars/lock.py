"""Writes ``jars.lock`` beside a ``pom.xml``: the jars Maven resolves from it, each with its SHA-256.

``make lock-jars`` runs it after a change of a ``pom.xml``. Nothing else needs Maven.
"""

import hashlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_HEADER = (
    "# Written by `make lock-jars`: group:artifact:version[:classifier[:ending]] and SHA-256, first that of pom.xml.\n"
)
_JAR, _ARCHIVE = "jar", "tar.gz"
_POM = "pom.xml"


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
    ending: str = _JAR

    @property
    def coordinates(self) -> str:
        """``group:artifact:version[:classifier[:ending]]``; the classifier of an archive may be empty."""
        parts = [self.group, self.artifact, self.version, self.classifier, "" if self.ending == _JAR else self.ending]
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
    lines = [line.split() for line in (folder / "jars.lock").read_text().splitlines() if not line.startswith("#")]
    locked = dict(lines)
    if locked.pop(_POM) != digest(folder / _POM):
        raise LockError(f"{folder}/jars.lock was made from another {_POM}: run `make lock-jars` (needs Maven)")
    return [_parsed(name, sha256) for name, sha256 in locked.items()]


def _parsed(coordinates: str, sha256: str) -> Jar:
    group, artifact, version, classifier, ending = [*coordinates.split(":"), "", ""][:5]
    return Jar(group, artifact, version, classifier, sha256, ending or _JAR)


def write_lock(folder: Path) -> None:
    """Resolves ``folder/pom.xml`` with Maven and writes ``folder/jars.lock``."""
    pom = folder / _POM
    with tempfile.TemporaryDirectory() as resolved:
        maven = ["mvn", "--batch-mode", "--quiet", "--file", str(pom), f"{_PLUGIN}:copy-dependencies"]
        options = [f"-DoutputDirectory={resolved}", "-DincludeScope=runtime", "-Dmdep.useRepositoryLayout=true"]
        subprocess.run([*maven, *options], check=True)
        found = [path for ending in (_JAR, _ARCHIVE) for path in Path(resolved).rglob(f"*.{ending}")]
        jars = sorted(_jar(path, Path(resolved)) for path in found)
    lines = [_HEADER, f"{_POM} {digest(pom)}\n", *(f"{jar.coordinates} {jar.sha256}\n" for jar in jars)]
    (folder / "jars.lock").write_text("".join(lines))


def _jar(path: Path, root: Path) -> Jar:
    *group, artifact, version, name = path.relative_to(root).parts
    ending = _ARCHIVE if name.endswith(f".{_ARCHIVE}") else _JAR
    classifier = name.removesuffix(f".{ending}").removeprefix(f"{artifact}-{version}").removeprefix("-")
    return Jar(".".join(group), artifact, version, classifier, digest(path), ending)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        write_lock(Path(each))
