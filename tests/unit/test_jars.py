"""The jars that set-up fetches are the ones that were locked from a pom.xml."""

import re
import shutil
from pathlib import Path

import pytest

from spark_jobs.spark.jars.lock import Jar, LockError, read_lock

_CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "folder", ["spark_jobs/spark/jars", "infra/kafka", "infra/registry", "infra/trino", "infra/yarn"]
)
def test_the_lock_agrees_with_its_pom(folder: str) -> None:
    jars = read_lock(_CHECKOUT / folder)
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in jars)
    assert len({jar.name for jar in jars}) == len(jars), "they lie in one folder"
    pom = (_CHECKOUT / folder / "pom.xml").read_text()
    declared = set(re.findall(r"<dependency>\s*<groupId>([^<]+)</groupId>\s*<artifactId>([^<]+)", pom))
    assert declared
    assert declared <= {(jar.group, jar.artifact) for jar in jars}


def test_a_lock_that_was_made_from_another_pom_is_refused(tmp_path: Path) -> None:
    for name in ("pom.xml", "jars.lock"):
        shutil.copy(_CHECKOUT / "infra" / "kafka" / name, tmp_path)
    assert read_lock(tmp_path) == read_lock(_CHECKOUT / "infra" / "kafka")
    with (tmp_path / "pom.xml").open("a") as pom:
        pom.write("<!-- changed -->\n")
    with pytest.raises(LockError, match=r"run `make lock-jars`"):
        read_lock(tmp_path)


@pytest.mark.parametrize(
    ("coordinates", "name"),
    [
        pytest.param("org.acme:tool:1.0", "tool-1.0.jar", id="plain"),
        pytest.param("org.acme:tool:1.0:linux-x86_64", "tool-1.0-linux-x86_64.jar", id="with-classifier"),
        pytest.param("org.acme:tool:1.0:all:tar.gz", "tool-1.0-all.tar.gz", id="archive"),
        pytest.param("org.acme:tool:1.0::tar.gz", "tool-1.0.tar.gz", id="archive-without-classifier"),
    ],
)
def test_a_jar_has_the_name_that_a_repository_gives_it(coordinates: str, name: str) -> None:
    group, artifact, version, classifier, ending = [*coordinates.split(":"), "", ""][:5]
    jar = Jar(group, artifact, version, classifier, "0" * 64, ending or "jar")
    assert (jar.coordinates, jar.name) == (coordinates, name)
