"""A process that starts Java once for several commands: ``python -m spark_jobs.spark.java_host``.

::

    adloom job deduplicate ──┐                      ┌─ session, gateway, locks
    adloom job attribute ────┼── socket ── host ── Java (one SparkContext)
    adloom show ─────────────┘                      └─ session, gateway, locks

A command connects to the host's socket, which only its owner may open, and gets a Py4J gateway of its own into Java,
with a Spark session of its own. Java works for it as long as it keeps the connection. When the connection ends, however
the command ended, the host stops its streaming queries, cancels its Spark jobs and closes the file locks that it took.
A host that serves nobody ends after ``spark.keep_java``.

The side of the commands is :mod:`spark_jobs.spark.shared_java`.
"""

import json
import logging
import os
import secrets
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_jobs.lake.file_lock import waiting_for
from spark_jobs.spark.session import start_own
from spark_jobs.spark.shared_java import LOCKS, SESSION, HostOrder, release

_SERVED, _LEAVING = "served", "leaving"
_log = logging.getLogger(__name__)


class Host:
    """Java, and the commands that it works for."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._change = spark, threading.Condition()
        self._commands: Counter[str] = Counter()

    @property
    def is_idle(self) -> bool:
        """Whether no command is served."""
        return not self._commands[_SERVED]

    def wait_until_idle(self, seconds: float) -> None:
        """Returns when no command has been served for ``seconds``."""
        with self._change:
            while True:
                self._change.wait_for(lambda: self.is_idle)
                if not self._change.wait_for(lambda: not self.is_idle, seconds):
                    return

    def serve(self, connection: socket.socket) -> None:
        """Serves a command until its connection ends; nothing of it is left in Java then."""
        with connection, self._counted(_SERVED):
            with self._change:
                # What a killed command left behind could still write.
                self._change.wait_for(lambda: not self._commands[_LEAVING])
            session = self._spark._jsparkSession.newSession()  # noqa: SLF001
            locks = self._jvm.java.util.ArrayList()
            gateway, answer = self._gateway({SESSION: session, LOCKS: locks})
            with suppress(OSError):  # a connection that breaks has ended
                connection.sendall(json.dumps(answer).encode() + b"\n")
                while connection.recv(1):
                    pass
            with self._counted(_LEAVING):
                _clean_up(self._jvm, session, locks, gateway)
            _log.info("a command has ended, and nothing of it is left in Java")

    @property
    def _jvm(self) -> Any:
        return self._spark.sparkContext._jvm  # noqa: SLF001

    @contextmanager
    def _counted(self, kind: str) -> Iterator[None]:
        self._count(kind, 1)
        try:
            yield
        finally:
            self._count(kind, -1)

    def _count(self, kind: str, change: int) -> None:
        with self._change:
            self._commands[kind] += change
            self._change.notify_all()

    def _gateway(self, entry: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """A Py4J server of its own, as Spark starts one for PySpark: callbacks go to the Python that uses it."""
        point = self._jvm.java.util.HashMap()
        for key, value in entry.items():
            point.put(key, value)
        token = secrets.token_hex(32)
        builder = self._jvm.py4j.ClientServer.ClientServerBuilder(point)
        server = builder.javaPort(0).authToken(token).build()
        server.startServer()
        return server, {"port": server.getJavaServer().getListeningPort(), "token": token, "process": os.getpid()}


def _clean_up(jvm: Any, session: Any, locks: Any, gateway: Any) -> None:
    for query in session.streams().active():
        with suppress(Py4JError):  # it has failed, because its command is gone
            query.stop()
    with suppress(Py4JError):
        session.interruptAll()
    for lock in locks:
        release(jvm, lock)
    gateway.shutdown()


def main() -> None:
    """Serves commands until none has come for ``spark.keep_java``."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    order = HostOrder.model_validate_json(sys.stdin.read())
    spark = start_own(order.settings, is_local=order.is_local, log_file=order.log_file, lifetime=order.lifetime)
    host = Host(spark)
    with socket.socket(socket.AF_UNIX) as listening:
        # The folder is the owner's alone. The name appears when connections can be taken.
        early = order.socket.with_suffix(".early")
        early.unlink(missing_ok=True)
        listening.bind(str(early))
        listening.listen()
        early.rename(order.socket)
        threading.Thread(target=_end_with_java, args=(spark, order.socket), daemon=True).start()
        threading.Thread(target=_accept, args=(listening, host), daemon=True).start()
        while True:
            host.wait_until_idle(order.settings.spark.keep_java.total_seconds())
            with waiting_for(order.socket.with_suffix(".lock")):
                # Nobody can connect now, but somebody may just have done so.
                if host.is_idle:
                    order.socket.unlink()
                    break
    spark.stop()


def _end_with_java(spark: SparkSession, name: Path) -> None:
    """Ends this process when its Java has ended: commands must not find a host that cannot serve them."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    code = gateway.proc.wait()
    name.unlink(missing_ok=True)
    _log.error("Java ended with code %s, so this host ends", code)
    os._exit(1)


def _accept(listening: socket.socket, host: Host) -> None:
    with suppress(OSError):  # the host ends
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=host.serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
