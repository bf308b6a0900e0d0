"""The generator's options, checked before any event is generated."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from spark_jobs.errors import SettingsError

_EVENTS_PER_USER = 20
_FEWEST_USERS = 50
_SHORTEST, _LONGEST = 1 / 3600, 366 * 24
_FIRST_YEAR, _LAST_YEAR = 1971, 2090
_MOST_FILES = 100_000
_MOST_CAMPAIGNS = 100_000
_MOST_USERS = 1_000_000_000


@dataclass(frozen=True)
class GeneratorSpec:
    """How much traffic to generate, for when, and with which faults. Equal specs give equal bytes.

    ``events`` counts distinct good events; duplicates and malformed records come on top. Shares are between 0 and 1:
    good events sent twice (``duplicates``), good events that arrive hours late (``late``), broken records relative to
    good events (``malformed``), clicks whose impression never arrives (``orphans``), clicks that lead to a conversion
    (``conversions``), events that bots make (``bots``): only with bots, events have the fields ``ip`` and
    ``user_agent``. Traffic starts at ``start`` and lasts ``hours``.

    Raises:
        SettingsError: a value is outside its limits.
    """

    events: int
    seed: int = 0
    duplicates: float = 0.03
    late: float = 0.002
    malformed: float = 0.005
    orphans: float = 0.02
    conversions: float = 0.0
    bots: float = 0.0
    start: datetime = datetime(2025, 1, 6, tzinfo=UTC)
    hours: float = 24.0
    files: int = 24
    gzip: bool = False
    users: int | None = None
    campaigns: int = 40

    def __post_init__(self) -> None:
        """Refuses a spec that cannot be generated."""
        if self.events < 1:
            raise SettingsError(f"events {self.events}: there is nothing to generate; request at least 1")
        for name in ("duplicates", "late", "malformed", "orphans", "conversions", "bots"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise SettingsError(f"{name} {share}: a share must be between 0 and 1; write 0.03 for 3 %")
        _check_count("files", self.files, _MOST_FILES)
        _check_count("campaigns", self.campaigns, _MOST_CAMPAIGNS)
        if self.users is not None:
            _check_count("users", self.users, _MOST_USERS)
        self._check_time()

    def _check_time(self) -> None:
        if self.start.tzinfo is None:
            raise SettingsError(f"start {self.start.isoformat()} has no time zone; end it with Z or an offset")
        if not _FIRST_YEAR <= self.start.year <= _LAST_YEAR:
            raise SettingsError(
                f"start {self.start.isoformat()} is outside the years {_FIRST_YEAR} to {_LAST_YEAR}: "
                "events of that time are not accepted; choose a day in between"
            )
        if not _SHORTEST <= self.hours <= _LONGEST:
            raise SettingsError(
                f"hours {self.hours}: traffic must last between one second and {_LONGEST} hours; write 24 for a day"
            )

    @property
    def span(self) -> timedelta:
        """How long the traffic lasts."""
        return timedelta(hours=self.hours)

    @property
    def user_count(self) -> int:
        """``users``, or by default one user per 20 events, but at least 50."""
        return self.users or max(_FEWEST_USERS, self.events // _EVENTS_PER_USER)

    @property
    def duplicate_count(self) -> int:
        """How many events are sent twice."""
        return round(self.events * self.duplicates)

    @property
    def malformed_count(self) -> int:
        """How many broken records are added."""
        return round(self.events * self.malformed)

    @property
    def record_count(self) -> int:
        """How many lines are written."""
        return self.events + self.duplicate_count + self.malformed_count


def _check_count(name: str, count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise SettingsError(f"{name} {count}: must be between 1 and {most}")
