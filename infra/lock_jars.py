"""Writes ``jars.lock`` next to a ``pom.xml``: the jars Maven resolves from it, each with its SHA-256.

``make lock-jars`` runs it after a change of a ``pom.xml``. Nothing else needs Maven.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from spark_jobs.spark.jars.lock import JAR, LOCK, POM, Jar, digest

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_HEADER = (
    "# Written by `make lock-jars`: group:artifact:version[:classifier[:ending]] and SHA-256, first that of pom.xml.\n"
)
_ARCHIVE = "tar.gz"


def write_lock(folder: Path) -> None:
    """Resolves ``folder/pom.xml`` with Maven and writes ``folder/jars.lock``."""
    pom = folder / POM
    with tempfile.TemporaryDirectory() as resolved:
        maven = ["mvn", "--batch-mode", "--quiet", "--file", str(pom), f"{_PLUGIN}:copy-dependencies"]
        options = [f"-DoutputDirectory={resolved}", "-DincludeScope=runtime", "-Dmdep.useRepositoryLayout=true"]
        subprocess.run([*maven, *options], check=True)
        found = [path for ending in (JAR, _ARCHIVE) for path in Path(resolved).rglob(f"*.{ending}")]
        jars = sorted(_jar(path, Path(resolved)) for path in found)
    lines = [_HEADER, f"{POM} {digest(pom)}\n", *(f"{jar.coordinates} {jar.sha256}\n" for jar in jars)]
    (folder / LOCK).write_text("".join(lines))


def _jar(path: Path, root: Path) -> Jar:
    *group, artifact, version, name = path.relative_to(root).parts
    ending = _ARCHIVE if name.endswith(f".{_ARCHIVE}") else JAR
    classifier = name.removesuffix(f".{ending}").removeprefix(f"{artifact}-{version}").removeprefix("-")
    return Jar(".".join(group), artifact, version, classifier, digest(path), ending)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        write_lock(Path(each))
