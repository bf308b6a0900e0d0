"""Whether a user is online, active or inactive: an output per change.

::

    idle 1h     12:00    12:20   12:50            13:50      15:00
    events        a        b       c                |          d
    status     online   active     .            inactive    online
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from spark_jobs.config.choices import UserStatus


class StatusChange(NamedTuple):
    """A status, and since when it applies, in microseconds since 1970."""

    status: UserStatus
    since_us: int


@dataclass(frozen=True)
class Presence:
    """The state of a user.

    Attributes:
        status: the last one emitted; None: none, or inactive.
        last_us: time of the last event; 0 without one.
        waiting: times of events before which others may still come, in order.
    """

    status: UserStatus | None = None
    last_us: int = 0
    waiting: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return self.status is None and not self.waiting


def settle(
    presence: Presence, times_us: Iterable[int], until_us: int, idle_us: int | None
) -> tuple[Presence, list[StatusChange]]:
    """Adds events, and decides everything that later ones cannot change.

    Args:
        presence: the state before.
        times_us: of new events, in any order.
        until_us: all events up to this time have arrived.
        idle_us: a user is inactive if this time passes without an event; None: never.

    Returns:
        The state after, and the changes in order of time.
    """
    waiting = sorted((*presence.waiting, *times_us))
    split = next((at for at, time_us in enumerate(waiting) if time_us > until_us), len(waiting))
    status, last_us, changes = presence.status, presence.last_us, list[StatusChange]()
    for time_us in waiting[:split]:
        if status and idle_us is not None and time_us > last_us + idle_us:
            changes.append(StatusChange(UserStatus.INACTIVE, last_us + idle_us))
            status = None
        if status is not UserStatus.ACTIVE:
            status = UserStatus.ACTIVE if status else UserStatus.ONLINE
            changes.append(StatusChange(status, time_us))
        last_us = time_us
    if status and idle_us is not None and until_us >= last_us + idle_us:
        changes.append(StatusChange(UserStatus.INACTIVE, last_us + idle_us))
        status = None
    return Presence(status, last_us if status else 0, tuple(waiting[split:])), changes


def due_us(presence: Presence, idle_us: int | None) -> int | None:
    """The earliest time at which more can be decided; None: nothing is open."""
    times = [presence.waiting[0]] if presence.waiting else []
    if presence.status and idle_us is not None:
        times.append(presence.last_us + idle_us)
    return min(times, default=None)


def close(presence: Presence, now_us: int) -> list[StatusChange]:
    """The change when the user has been silent for too long, in wall-clock time; ``now_us`` is the current time."""
    return [StatusChange(UserStatus.INACTIVE, now_us)] if presence.status else []
