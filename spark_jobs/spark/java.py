"""The Java that Spark runs on: which versions, and which options for how long a session works."""

import os
import re
import shutil
import subprocess
from enum import Enum
from pathlib import Path

from spark_jobs.errors import EnvironmentMissingError

_JAVA_VERSIONS = (17, 21)
_LOG4J = Path(__file__).with_name("log4j2.properties")
_LOCALE = tuple(
    # Where people write other digits, Delta would name its commits with them, and find none.
    f"-Duser.{name}{kind}={value}"
    for kind in ("", ".format", ".display")
    for name, value in (("language", "en"), ("country", "US"), ("script", ""), ("variant", ""), ("extensions", ""))
)
_ALWAYS = (
    *_LOCALE,
    # Spark's generated code for judging a record exceeds the size up to which the JVM compiles a method by default: it
    # would be 3 times slower.
    "-XX:-DontCompileHugeMethods",
    # Batches want throughput; the default collector pays for short pauses with every store.
    "-XX:+UseParallelGC",
    # With the defaults the whole heap is collected several times while Spark's classes are loaded.
    "-XX:MetaspaceSize=256m",
)
EXECUTOR_OPTIONS = (*_LOCALE, "-XX:-DontCompileHugeMethods", "-XX:+UseParallelGC")
"""For the JVMs of executors on a cluster."""


class Lifetime(Enum):
    """How long a session will work; the JVM compiles accordingly."""

    SHORT = "short"
    """Seconds of data: the run is over before optimized code has paid for its compilation."""
    RUN = "run"
    """Minutes."""
    SERVICE = "service"
    """Days."""


_PATIENT = (
    # Ten times the defaults: within minutes the optimizing compiler costs a small machine more than it gains.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
_BY_LIFETIME = {
    # With one compiler the code cache has 48 MB by default, which is too little for Spark.
    Lifetime.SHORT: ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"),
    Lifetime.RUN: _PATIENT,
    # In days more is compiled than fits into the default of 240 MB; compilation would stop. There is room for all of
    # it, so nothing need look for code to throw away.
    Lifetime.SERVICE: (*_PATIENT, "-XX:ReservedCodeCacheSize=512m", "-XX:-UseCodeCacheFlushing"),
}


def driver_options(lifetime: Lifetime, *, log_file: Path | None, temporary: Path | None) -> list[str]:
    """Options for the JVM of a driver.

    Args:
        lifetime: how long the session will work.
        log_file: where Spark's own log goes; None: only its errors are kept, on stderr.
        temporary: folder for temporary files; None: the machine's.
    """
    options = [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"]
    if log_file:
        options.append(f"-Dadloom.log={log_file}")
    if temporary:
        # Native libraries are unpacked there, tens of MB for each process.
        options.append(f"-Djava.io.tmpdir={temporary}")
    return [*options, *_ALWAYS, *_BY_LIFETIME[lifetime]]


def check_java() -> None:
    """Checks that the Java that Spark would start is a version it runs on.

    Raises:
        EnvironmentMissingError: there is no Java, or another version.
    """
    install = (
        "install Java 17 or 21 (apt-get install openjdk-17-jre-headless on Debian 12 or Ubuntu, "
        "openjdk-21-jre-headless on Debian 13)"
    )
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java or not Path(java).is_file():
        raise EnvironmentMissingError(f"no Java found ({'JAVA_HOME=' + home if home else 'PATH'}); {install}")
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
    version = re.search(r'version "(\d+)', printed)
    if not version or int(version[1]) not in _JAVA_VERSIONS:
        found = version[1] if version else "an unknown version"
        raise EnvironmentMissingError(f"{java} is Java {found}; {install}, or set JAVA_HOME")
