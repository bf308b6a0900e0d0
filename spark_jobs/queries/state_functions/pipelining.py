"""Fewer waits between a state function in Python and Spark.

For each key, a function sends Spark five requests: set the key, get its state, delete a timer, set a timer, update the
state. PySpark waits for each answer, and four of five say only "done". Here such requests are sent together with the
next one whose answer is needed, and their answers are read then::

    PySpark      key → ✓ → get → state → delete → ✓ → set → ✓ → update → ✓      five waits a key
    pipelined    key, get → ✓, state → delete, set, update, key, get → ✓ ✓ ✓ ✓, state      one

PySpark also searches each value of a state, however deep, for types of NumPy and pandas. These states have none.

A refusal is raised when it is read, in the same batch: PySpark ends each batch with a request that it waits for.
"""

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, ValueState
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
from pyspark.sql.types import StructType

_DONE = (0, "", b"")
_PROTOCOL, _HEAD, _LENGTH = 0, Struct("!ii"), Struct("!i")
_MOST_UNREAD = 200
"""The most answers left unread: they must fit into the buffers of the connection."""


def pipeline(handle: StatefulProcessorHandle, state: ValueState) -> None:
    """Makes requests of ``handle`` and ``state`` without a useful answer return at once.

    It replaces private methods of PySpark; a test checks that these have not changed.
    """
    client: Any = getattr(handle, "_statefulProcessorApiClient", None)
    if not isinstance(client, StatefulProcessorApiClient):
        return  # a test without Spark
    setattr(client, "_serialize_to_bytes", partial(_serialize, client.pickleSer))  # noqa: B010 mypy knows the method
    line = _Line(client)
    for name in ("set_implicit_key", "register_timer", "delete_timer"):
        setattr(client, name, line.unanswered(getattr(client, name)))
    values = state._valueStateClient  # noqa: SLF001
    for name in ("update", "clear"):
        setattr(values, name, line.unanswered(getattr(values, name)))


def _serialize(pickler: Any, schema: StructType, data: tuple[Any, ...]) -> bytes:
    serialized: bytes = pickler.dumps(schema.toInternal(data))
    return serialized


class _Line:
    """The connection of ``client``, a ``StatefulProcessorApiClient``."""

    def __init__(self, client: Any) -> None:
        self._file, self._unread, self._is_waiting = client.sockfile, 0, True
        client._send_proto_message = self._send  # noqa: SLF001
        for name in [name for name in dir(client) if name.startswith("_receive_proto_message")]:
            setattr(client, name, self._answered(getattr(client, name)))

    def unanswered(self, request: Callable[..., None]) -> Callable[..., None]:
        """``request``, without waiting for its answer."""

        def send(*arguments: Any) -> None:
            self._is_waiting = False
            try:
                request(*arguments)
            finally:
                self._is_waiting = True
            self._unread += 1
            if self._unread > _MOST_UNREAD:
                self._catch_up()

        return send

    def _send(self, message: bytes) -> None:
        self._file.write(_HEAD.pack(_PROTOCOL, len(message)) + message)

    def _answered(self, receive: Callable[[], Any]) -> Callable[[], Any]:
        def wait() -> Any:
            if not self._is_waiting:
                return _DONE
            self._catch_up()
            return receive()

        return wait

    def _catch_up(self) -> None:
        """Sends the remaining requests, and reads the answers before the next one.

        Raises:
            RuntimeError: Spark refused one of the requests.
        """
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages  # as PySpark does

        self._file.flush()
        unread, self._unread = self._unread, 0
        for _ in range(unread):
            answer = messages.StateResponse()
            (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
            answer.ParseFromString(self._file.read(length))
            if answer.statusCode:
                raise RuntimeError(f"Spark refused a request of a state function: {answer.errorMessage}")
