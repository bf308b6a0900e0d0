"""Java that several commands share, and that outlives them for a while: ``spark.keep_java``.

Java takes seconds to start and minutes to get fast. Commands of one user whose Spark settings and keys are equal join
the Java of one host (:mod:`spark_jobs.spark.java_host`), which the first of them starts.
"""

import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_jobs import __version__
from spark_jobs.config.settings import Settings
from spark_jobs.errors import EnvironmentMissingError
from spark_jobs.lake.file_lock import waiting_for
from spark_jobs.spark.java import Lifetime, check_java

SESSION, LOCKS = "session", "locks"
"""Keys of what a host's gateway gives a command: its Spark session, and a list of what it has reserved, which the host
releases when the command has ended: see :func:`reserve`."""
_SECTIONS = {"spark", "s3", "tables"}
"""The settings that Java gets at its start."""
_OF_JAVA = ("AWS_", "SPARK_", "JAVA_", "HADOOP_", "PYSPARK_", "PYTHON", "TZ", "TMPDIR")
"""Beginnings of environment variables that Java or Spark's workers get at their start."""
_LONGEST_FOLDER = 80
"""Of 107 bytes, what the name of a socket leaves."""
_START_S = 120.0
_ANSWER_S = 60.0
_joined: "_Joined | None" = None


class HostOrder(BaseModel):
    """The order for a host, as JSON on its standard input."""

    socket: Path
    settings: Settings
    is_local: bool
    lifetime: Lifetime
    log_file: Path


@dataclass(frozen=True)
class _Joined:
    """The connection that keeps this process served."""

    connection: socket.socket
    gateway: Any
    process_id: int
    log_file: Path


def join(settings: Settings, *, is_local: bool, lifetime: Lifetime) -> SparkSession:
    """A session in the Java of a host, which is started if no host for these settings is running.

    Args:
        settings: those of Spark, tables and the object store decide which host it is.
        is_local: whether the lake is.
        lifetime: how long the session will work. Short work is done by the host of longer work.

    Raises:
        EnvironmentMissingError: the host cannot be started or does not answer, or others could open its folder.
    """
    global _joined  # noqa: PLW0603 there is one Spark in a process
    lifetime = Lifetime.RUN if lifetime is Lifetime.SHORT else lifetime
    host = folder_of_hosts() / host_name(settings, os.environ, is_local=is_local, lifetime=lifetime)
    order = HostOrder(
        socket=host.with_suffix(".sock"),
        settings=Settings.model_validate(_of_java(settings)),
        is_local=is_local,
        lifetime=lifetime,
        log_file=host.with_suffix(".log"),
    )
    # Held until the host has answered: it does not end meanwhile.
    with waiting_for(host.with_suffix(".lock")):
        connection = _connect(order.socket) or _start(order)
        answer = _answer(connection)
    if answer is None:
        raise EnvironmentMissingError(
            f"the Java that commands share (spark.keep_java) has ended or did not answer within {_ANSWER_S:.0f} s; "
            f"why is at the end of {order.log_file}: try again, or go on without it (ADLOOM_SPARK__KEEP_JAVA=0s)"
        )
    spark = _session(answer)
    _joined = _Joined(connection, SparkContext._gateway, answer["process"], order.log_file)  # noqa: SLF001
    return spark


def place() -> str:
    """Where the Spark session of this process is, to be logged; empty if its Java is its own."""
    return f"the Java of process {_joined.process_id}, which logs to {_joined.log_file}" if _joined else ""


def leave() -> bool:
    """Ends the session that :func:`join` gave; Java goes on. Returns whether there was one."""
    global _joined  # noqa: PLW0603
    if _joined is None:
        return False
    _joined.gateway.shutdown()
    _joined.connection.close()
    _joined = None
    # What PySpark's own stop would forget: the next session of this process is in another gateway.
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    return True


def reserve(jvm: Any, name: str) -> Any | None:
    """Reserves ``name`` among all commands that ``jvm`` works for; the host releases it if this process cannot.

    Returns:
        A Java list for :func:`release`, to which whoever reserved it may add a Java file channel to be closed then;
        None if the name is reserved.
    """
    lock = jvm.java.util.ArrayList()
    lock.add(name)
    lock.add(secrets.token_hex(16))
    if _joined is not None:
        _joined.gateway.entry_point.get(LOCKS).add(lock)
    return lock if jvm.java.lang.System.getProperties().putIfAbsent(name, lock[1]) is None else None


def release(jvm: Any, lock: Any) -> None:
    """Closes the channel of ``lock``, then gives its name back, unless somebody else has reserved that."""
    name, token, *channels = lock
    for channel in channels:
        channel.close()
    jvm.java.lang.System.getProperties().remove(name, token)


def folder_of_hosts() -> Path:
    """This user's own folder of hosts: their sockets, locks and logs.

    Raises:
        EnvironmentMissingError: somebody else could open it, or its name is too long.
    """
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    folder = base / f"adloom-java-{os.getuid()}"
    if len(str(folder)) > _LONGEST_FOLDER:
        raise EnvironmentMissingError(
            f"{folder} is too long for the name of a socket, and commands share Java through one (spark.keep_java): "
            "set XDG_RUNTIME_DIR to a folder of your own with a short name"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or folder.is_symlink():
        raise EnvironmentMissingError(
            f"{folder} must be a folder that only you can open: through it commands share Java (spark.keep_java); "
            "remove it, or set XDG_RUNTIME_DIR to a folder of your own"
        )
    return folder


def host_name(settings: Settings, environment: Mapping[str, str], *, is_local: bool, lifetime: Lifetime) -> str:
    """Names the host: whatever Java gets at its start is in it."""
    parts = {
        "settings": _of_java(settings),
        "is_local": is_local,
        "lifetime": lifetime.value,
        "environment": {name: value for name, value in environment.items() if name.startswith(_OF_JAVA)},
        "code": [__version__, sys.executable, str(Path(__file__).parent)],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _of_java(settings: Settings) -> dict[str, Any]:
    return settings.model_dump(mode="json", include=_SECTIONS)


def _connect(name: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_ANSWER_S)
    try:
        connection.connect(str(name))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()  # it was killed, or does not exist
        return None
    return connection


def _answer(connection: socket.socket) -> dict[str, Any] | None:
    """The host's answer; None if it ends instead, or takes too long to clean up after commands that ended."""
    try:
        answer: dict[str, Any] | None = json.loads(connection.makefile().readline() or "null")
    except OSError:
        return None
    return answer


def _start(order: HostOrder) -> socket.socket:
    """Starts a host; returns a connection to it.

    Raises:
        EnvironmentMissingError: there is no Java, or the host ended at once.
    """
    check_java()
    order.socket.unlink(missing_ok=True)
    with order.log_file.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "spark_jobs.spark.java_host"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        assert process.stdin is not None  # noqa: S101 it is a pipe
        with process.stdin as given:
            given.write(order.model_dump_json().encode())
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        if connection := _connect(order.socket):
            return connection
        time.sleep(0.05)
    raise EnvironmentMissingError(
        f"the Java that commands share (spark.keep_java) did not start; why is at the end of {order.log_file}"
    )


def _session(answer: Mapping[str, Any]) -> SparkSession:
    """PySpark's session over the gateway of ``answer``."""
    names = {"PYSPARK_GATEWAY_PORT": str(answer["port"]), "PYSPARK_GATEWAY_SECRET": answer["token"]}
    os.environ |= names
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in names:
            del os.environ[name]
    session = gateway.entry_point.get(SESSION)
    java = gateway.jvm.JavaSparkContext(session.sparkContext())
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    return SparkSession(context, session)
