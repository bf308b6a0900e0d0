"""State functions in Python, with one value and one timer per key; each decides by the `rule` of its query.

Classes in this module are pickled by reference, so the workers import it: it must not import more of the package than
they need.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from spark_jobs.config.choices import UserStatus
from spark_jobs.queries.moving_average import rule as moving_average
from spark_jobs.queries.moving_average.rule import Average, AverageRule, Reading, Series
from spark_jobs.queries.state_functions.pipelining import pipeline
from spark_jobs.queries.user_status import rule as user_status
from spark_jobs.queries.user_status.rule import Presence, StatusChange
from spark_jobs.spark.names import STATE_VALUE

_FOR_EVER_US = 2**62
_MONTH_MS = 30 * 24 * 3600 * 1000


def _names(schema: str) -> list[str]:
    """The names of the fields of ``schema``, whose types must contain no comma."""
    return [field.split()[0] for field in schema.split(", ")]


class _Known(Protocol):
    @property
    def is_empty(self) -> bool: ...


K = TypeVar("K", bound=_Known)


class KeyedProcessor(StatefulProcessor, Generic[K]):
    """Consumes rows and emits decided results.

    In event time a row is held back until no earlier one can arrive, so the output does not depend on the order of
    arrival. In processing time rows are processed as they arrive, and a key without rows for the timeout is closed by
    the next batch; if nothing arrives, by the batch of the next heartbeat.

    Args:
        timeout_ms: the silence after which a key is closed, in processing time; None: event time.
    """

    schema: ClassVar[str]
    """The schema of the state: its fields, and when its timer expires, in milliseconds."""

    def __init__(self, timeout_ms: int | None) -> None:
        self._timeout_ms = timeout_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Prepares a task."""
        # The TTL must not fire before the timer, which emits the key's last rows. It is longer than any job is ever
        # stopped.
        ttl_ms = None if self._timeout_ms is None else self._timeout_ms + _MONTH_MS
        self._handle = handle
        self._state = handle.getValueState(STATE_VALUE, self.schema, ttl_ms)
        pipeline(handle, self._state)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        """Processes the rows of a key in a batch."""
        known, timer_ms = self._load()
        known, emitted = self.take(known, rows, self._until_us(timerValues))
        self._keep(known, timer_ms, timerValues)
        return self.rows(key, emitted)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Emits results that are decided now that the timer has expired."""
        known, _ = self._load()
        if self._timeout_ms is None:
            known, emitted = self.take(known, (), self._until_us(timerValues))
            self._keep(known, None, timerValues)
        else:
            emitted = self.give_up(known, expiredTimerInfo.getExpiryTimeInMs() * 1000)
            self._state.clear()
        return self.rows(key, emitted)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: TimerValues) -> None:  # noqa: ARG002, N802, N803
        """Starts a key with a given state: its fields, by name."""
        names = _names(self.schema)[:-1]
        known = self.decode(tuple(map(initialState.asDict().get, names)))
        self._keep(known, None, timerValues)

    @abstractmethod
    def take(self, known: K, rows: Iterable[Row], until_us: int) -> tuple[K, Iterable[Any]]:
        """The state after ``rows``, and the output. All rows up to ``until_us`` have arrived."""

    @abstractmethod
    def give_up(self, known: K, now_us: int) -> Iterable[Any]:
        """The output at the timeout, in processing time."""

    @abstractmethod
    def due_us(self, known: K) -> int | None:
        """When more can be decided, in event time."""

    @abstractmethod
    def decode(self, fields: tuple[Any, ...] | None) -> K:
        """The state from its fields, without the timer; None: the key has no state."""

    @abstractmethod
    def encode(self, known: K) -> tuple[Any, ...]:
        """The fields of the state, without the timer."""

    @abstractmethod
    def rows(self, key: Any, emitted: Iterable[Any]) -> Iterator[Row]:
        """The rows to emit."""

    def _until_us(self, times: TimerValues) -> int:
        return times.getCurrentWatermarkInMs() * 1000 if self._timeout_ms is None else _FOR_EVER_US

    def _load(self) -> tuple[K, int | None]:
        fields = self._state.get()
        return (self.decode(None), None) if fields is None else (self.decode(tuple(fields[:-1])), fields[-1])

    def _keep(self, known: K, timer_ms: int | None, times: TimerValues) -> None:
        wanted_ms = self._wanted_ms(known, times)
        if timer_ms is not None and timer_ms != wanted_ms:
            self._handle.deleteTimer(timer_ms)
        if wanted_ms is None:
            self._state.clear()
            return
        if timer_ms != wanted_ms:
            self._handle.registerTimer(wanted_ms)
        self._state.update((*self.encode(known), wanted_ms))

    def _wanted_ms(self, known: K, times: TimerValues) -> int | None:
        if known.is_empty:
            return None
        if self._timeout_ms is not None:
            return times.getCurrentProcessingTimeInMs() + self._timeout_ms
        due_us = self.due_us(known)
        # Rounded up: the watermark must have reached it.
        return None if due_us is None else -(-due_us // 1000)


class AverageProcessor(KeyedProcessor[Series]):
    """See :mod:`spark_jobs.queries.moving_average.rule`.

    Rows in: ``event_us`` (microseconds since 1970), ``value``; grouped by ``key`` and ``measure``.
    """

    schema = (
        "times ARRAY<BIGINT>, values ARRAY<DOUBLE>, "
        "waiting_times ARRAY<BIGINT>, waiting_values ARRAY<DOUBLE>, timer_ms BIGINT"
    )
    output = (
        "key STRING, measure STRING, window_start_us BIGINT, window_end_us BIGINT, "
        "value_count BIGINT, mean DOUBLE, is_last BOOLEAN"
    )

    def __init__(self, rule: AverageRule, timeout_ms: int | None) -> None:
        super().__init__(timeout_ms)
        self._rule = rule

    def take(self, known: Series, rows: Iterable[Row], until_us: int) -> tuple[Series, Iterable[Average]]:
        """Averages."""
        readings = (Reading(row["event_us"], row["value"]) for row in rows)
        return moving_average.settle(known, readings, until_us, self._rule)

    def give_up(self, known: Series, now_us: int) -> Iterable[Average]:  # noqa: ARG002
        """The last average, once more."""
        return moving_average.close(known)

    def due_us(self, known: Series) -> int | None:
        """When more can be decided."""
        return moving_average.due_us(known, self._rule)

    def decode(self, fields: tuple[Any, ...] | None) -> Series:
        """The readings."""
        if fields is None:
            return Series()
        times, values, waiting_times, waiting_values = fields
        return Series(_readings(times, values), _readings(waiting_times, waiting_values))

    def encode(self, known: Series) -> tuple[Any, ...]:
        """The times and values of the readings."""
        parts = (known.window, known.waiting)
        return tuple(column for part in parts for column in ([r.time_us for r in part], [r.value for r in part]))

    def rows(self, key: Any, emitted: Iterable[Average]) -> Iterator[Row]:
        """A row for each average."""
        return iter([_AVERAGE(*key, *average) for average in emitted])


_AVERAGE: Callable[..., Row] = Row(*_names(AverageProcessor.output))


def _readings(times: Iterable[int] | None, values: Iterable[float] | None) -> tuple[Reading, ...]:
    return tuple(map(Reading, times or (), values or ()))


class StatusProcessor(KeyedProcessor[Presence]):
    """See :mod:`spark_jobs.queries.user_status.rule`.

    Rows in: ``event_us`` (microseconds since 1970); grouped by ``user_id``.
    """

    schema = "status STRING, last_us BIGINT, waiting ARRAY<BIGINT>, timer_ms BIGINT"
    output = "user_id STRING, status STRING, since_us BIGINT"

    def __init__(self, idle_us: int | None, timeout_ms: int | None) -> None:
        super().__init__(timeout_ms)
        self._idle_us = idle_us

    def take(self, known: Presence, rows: Iterable[Row], until_us: int) -> tuple[Presence, Iterable[StatusChange]]:
        """Changes."""
        return user_status.settle(known, (row["event_us"] for row in rows), until_us, self._idle_us)

    def give_up(self, known: Presence, now_us: int) -> Iterable[StatusChange]:
        """The user is inactive."""
        return user_status.close(known, now_us)

    def due_us(self, known: Presence) -> int | None:
        """When more can be decided."""
        return user_status.due_us(known, self._idle_us)

    def decode(self, fields: tuple[Any, ...] | None) -> Presence:
        """The presence."""
        if fields is None:
            return Presence()
        status, last_us, waiting = fields
        return Presence(UserStatus(status) if status else None, last_us or 0, tuple(waiting or ()))

    def encode(self, known: Presence) -> tuple[Any, ...]:
        """Its fields."""
        return (known.status and known.status.value, known.last_us, list(known.waiting))

    def rows(self, key: Any, emitted: Iterable[StatusChange]) -> Iterator[Row]:
        """A row for each change."""
        return iter([_CHANGE(*key, change.status.value, change.since_us) for change in emitted])


_CHANGE: Callable[..., Row] = Row(*_names(StatusProcessor.output))
