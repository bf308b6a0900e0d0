"""Fetches the jars that a ``jars.lock`` lists and checks the SHA-256 of each.

It needs Java but not Maven: Ivy does the download, which PySpark ships for its own ``--packages``. The jars come from
Maven Central, or from the mirror that ``ADLOOM_MAVEN_URL`` names. After an interruption it continues where it stopped.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

from spark_jobs.spark.jars.lock import LOCK, Jar, digest, read_lock
from spark_jobs.spark.jars.spark import jars_of_spark, java

_CENTRAL = "https://repo.maven.apache.org/maven2"
_DONE = "[SUCCESSFUL ]"
_STEP = 10
"""Jars from one line of progress to the next."""
_PROBLEMS = ("not found", "Exception", "FAILED", "ERROR", "Error")
_SETTINGS = """<ivysettings>
  <settings defaultResolver="repository"/>
  <property name="ivy.checksums" value=""/>
  <caches defaultCacheDir={cache}/>
  <resolvers><ibiblio name="repository" m2compatible="true" usepoms="false" root={root}/></resolvers>
</ivysettings>
"""
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="adloom" module="jars"/>
  <dependencies>
{}  </dependencies>
</ivy-module>
"""


class FetchError(Exception):
    """Raised when a jar could not be fetched, or is not the one that was locked."""


def fetch(folder: Path, target: Path) -> None:
    """Makes ``target`` hold exactly the jars of ``folder/jars.lock``; quick when it does already.

    Raises:
        FetchError: the repository does not answer or lacks a jar, or a jar has another SHA-256.
        LockError: jars.lock was made from another pom.xml.
    """
    jars = read_lock(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir() and not differing(jars, target):
            return
        work = target.with_suffix(".new")
        # The settings and the notes of Ivy hold the address, which may have a password in it.
        work.mkdir(mode=0o700, exist_ok=True)
        work.chmod(0o700)
        root = os.environ.get("ADLOOM_MAVEN_URL") or _CENTRAL
        _download(jars, root, work)
        if changed := differing(jars, work / "jars"):
            shutil.rmtree(work)
            raise FetchError(
                f"{changed[0]} from {_shown(root)} does not have the SHA-256 that {folder}/{LOCK} lists; no jar "
                "was installed: the download or the repository is damaged; try again, or use another repository"
            )
        shutil.rmtree(target, ignore_errors=True)
        (work / "jars").rename(target)
        shutil.rmtree(work)


def differing(jars: list[Jar], folder: Path) -> list[str]:
    """Names of the jars in ``folder`` that are missing, unknown, or have another SHA-256."""
    found = {path.name: digest(path) for path in folder.iterdir()}
    wanted = {jar.name: jar.sha256 for jar in jars}
    return sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))


def _download(jars: list[Jar], root: str, work: Path) -> None:
    """Has Ivy put the jars into ``work/jars``; what it has fetched stays in ``work`` if it fails."""
    settings, module = work / "settings.xml", work / "ivy.xml"
    settings.write_text(_SETTINGS.format(cache=quoteattr(str(work / "cache")), root=quoteattr(root.rstrip("/") + "/")))
    module.write_text(_MODULE.format("".join(map(_dependency, jars))))
    shutil.rmtree(work / "jars", ignore_errors=True)
    ivy = ["-settings", str(settings), "-ivy", str(module)]
    retrieve = ["-retrieve", f"{work}/jars/[artifact]-[revision](-[classifier]).[ext]"]
    command = [java(), *_proxy(), "-cp", _ivy_jars(), "org.apache.ivy.Main", *ivy, *retrieve]
    say(f"fetching {len(jars)} jars from {_shown(root)}, once")
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            problem = _follow(process.stdout or (), len(jars))
    except FileNotFoundError as error:
        raise FetchError(f"{command[0]} was not found, which fetches the jars: install Java 17 or 21") from error
    if process.returncode:
        raise FetchError(
            f"the jars could not be fetched from {_shown(root)}: {problem}; try again to continue, "
            "or set ADLOOM_MAVEN_URL to a mirror of Maven Central"
        )


def _follow(lines: Iterable[str], total: int) -> str:
    """Shows the progress of the download, and returns the first problem that Ivy reports."""
    done, problem = 0, ""
    for line in lines:
        if _DONE in line:
            done += 1
            if done % _STEP == 0 or done == total:
                say(f"{done} of {total} jars")
        if not problem and any(word in line for word in _PROBLEMS):
            problem = line.strip(" :\t\n")
    return problem or "Ivy gave no reason"


def say(text: str) -> None:
    """Whole lines: a terminal may show something else meanwhile, and a log keeps them."""
    sys.stderr.write(f"adloom: {text}\n")
    sys.stderr.flush()


def _dependency(jar: Jar) -> str:
    named = f"org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)}"
    classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
    artifact = f'<artifact name={quoteattr(jar.artifact)} type="{jar.ending}" ext="{jar.ending}"{classifier}/>'
    return f'    <dependency {named} transitive="false">{artifact}</dependency>\n'


def _proxy() -> list[str]:
    """Java does not read ``https_proxy``."""
    proxy = urllib.parse.urlsplit(urllib.request.getproxies().get("https", ""))
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"] if proxy.hostname else []


def _ivy_jars() -> str:
    jars = jars_of_spark()
    if jars is None:
        raise FetchError(
            f"{sys.executable} has no pyspark, whose Ivy fetches the jars: install the Python packages first"
        )
    return os.pathsep.join(str(path) for name in ("ivy-*.jar", "commons-cli-*.jar") for path in jars.glob(name))


def _shown(root: str) -> str:
    """The address without a password that it may contain."""
    parts = urllib.parse.urlsplit(root)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
