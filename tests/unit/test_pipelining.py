"""Requests of a state function that wait for nothing, against a server that speaks Spark's protocol."""

import pickle
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyspark.sql.streaming.proto.StateMessage_pb2 as messages
import pytest
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, ValueState
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from spark_jobs.queries.state_functions.pipelining import pipeline

_KEY = StructType([StructField("key", StringType())])
_VALUE = StructType([StructField("times", ArrayType(LongType())), StructField("timer_ms", LongType())])
_STATE = ([1, 2], 5)

Answer = Callable[[Any], Any]


class _Server:
    """Answers each request at once and remembers it."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[str] = []
        self.kept: Any = None
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._thread.join(10)
        self._listening.close()
        assert not self._thread.is_alive(), "a request was left unsent"

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        # A client that was refused goes without reading the answers after it, at any moment.
        with connection, connection.makefile("rb") as file, suppress(ConnectionError):
            while head := file.read(8):
                version, length = struct.unpack("!ii", head)
                assert version == 0
                request = messages.StateRequest()
                request.ParseFromString(file.read(length))
                self.requests.append(_name(request))
                if self.requests[-1] == "valueStateUpdate":
                    self.kept = request.stateVariableRequest.valueStateCall.valueStateUpdate.value
                answer = self._answer(self.requests[-1]).SerializeToString()
                connection.sendall(struct.pack("!i", len(answer)) + answer)


def _name(request: Any) -> str:
    """What is asked: the innermost field that is set."""
    name = ""
    while fields := request.ListFields():
        field, request = fields[0] if fields[0][0].name != "stateName" else fields[-1]
        name = field.name
        if not hasattr(request, "ListFields"):
            break
        if not request.ListFields() or name in ("setImplicitKey", "valueStateUpdate", "register", "delete"):
            break
    return name


def _done(request: str) -> Any:
    if request == "get":
        return messages.StateResponse(statusCode=0, value=pickle.dumps(_STATE))
    return messages.StateResponse(statusCode=0)


@contextmanager
def _pipelined(answer: Answer = _done) -> Iterator[tuple[_Server, StatefulProcessorHandle, ValueState]]:
    server = _Server(answer)
    client = StatefulProcessorApiClient(server.port, _KEY)
    handle = StatefulProcessorHandle(client)
    state = handle.getValueState("known", _VALUE)
    pipeline(handle, state)
    server.requests.clear()
    yield server, handle, state
    client.sockfile.close()
    client._client_socket.close()
    server.end()


def test_requests_reach_spark_in_their_order_and_their_answers_are_told_apart() -> None:
    with _pipelined() as (server, handle, state):
        for key in ("a", "b", "c"):
            handle._statefulProcessorApiClient.set_implicit_key((key,))
            assert state.get() == _STATE
            handle.deleteTimer(5)
            handle.registerTimer(7)
            state.update(([3], 7))
        handle._statefulProcessorApiClient.remove_implicit_key()
    each = ["setImplicitKey", "get", "delete", "register", "valueStateUpdate"]
    assert server.requests == [*each * 3, "removeImplicitKey"]


def test_nothing_is_sent_until_an_answer_is_needed() -> None:
    with _pipelined() as (server, handle, state):
        state.update(([3], 7))
        handle.registerTimer(7)
        assert server.requests == []
        state.get()
        assert server.requests == ["valueStateUpdate", "register", "get"]


def test_a_state_arrives_as_it_was_given() -> None:
    with _pipelined() as (server, _handle, state):
        state.update(([3, 4], 7))
        state.get()
    assert tuple(pickle.loads(server.kept)) == ([3, 4], 7)  # noqa: S301 this test wrote it


def test_a_refusal_is_raised_with_the_next_answer() -> None:
    def refuse(request: str) -> Any:
        is_refused = request == "register"
        return messages.StateResponse(statusCode=1, errorMessage="no such time") if is_refused else _done(request)

    with _pipelined(refuse) as (_server, handle, state):
        handle.registerTimer(-1)
        state.update(([3], 7))
        with pytest.raises(RuntimeError, match="refused a request of a state function: no such time"):
            state.get()


def test_any_number_of_requests_without_an_answer_that_matters_fits() -> None:
    with _pipelined() as (server, handle, state):
        for time in range(20_000):
            handle.registerTimer(time)
        state.get()
    assert len(server.requests) == 20_001
