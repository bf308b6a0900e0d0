"""What a streaming query is, declared once: everything that the rest of adloom has to know about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table
from spark_jobs.queries.state_settings import StateSetting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.lake.layout import Lake
    from spark_jobs.queries.correction import Correction
    from spark_jobs.queries.manifest import Manifest
    from spark_jobs.queries.output import Output
    from spark_jobs.queries.resume_point import ResumePoint


Rows = Callable[[Settings, "Sequence[DataFrame]", "DataFrame | None"], "DataFrame"]
"""From the settings, a streaming DataFrame for each entry of :attr:`Query.reads` (what arrives from outside where there
is none) and the initial state, to rows with the columns of the table that the query writes."""


@dataclass(frozen=True)
class InitialState:
    """State that a query can be given at its first start, as a table or file that a setting names."""

    setting: str
    """Its name, as in ``moving_average.initial_state``."""
    columns: str
    """Of the table or file, as a Spark SQL schema."""
    meaning: str
    """What a row is; for docs."""
    choices: Callable[[Settings], Mapping[str, Sequence[str]]] = field(default=lambda _: {}, repr=False)
    """By column, the values that it may have; other columns may have any."""
    known: "Callable[[Settings, DataFrame], DataFrame] | None" = field(default=None, repr=False)
    """From its rows to the initial state that :attr:`Query.rows` takes; None: its rows are events, and join those of
    the first batch."""
    depends_on: tuple[str, ...] = ()
    """Settings that its rows belong to: a reset that changes one of them leaves the initial state behind."""


@dataclass(frozen=True, eq=False)
class Query:
    """A streaming query: one checkpoint, one output table.

    The module ``query`` of its folder declares it as ``QUERY``. DAG files read these declarations, so such a module
    imports Spark within its functions only.
    """

    name: str
    job: str
    """Name of the job that runs it, one of :data:`spark_jobs.queries.jobs.JOBS`."""
    summary: str
    """What it does, in one sentence; for help and docs."""
    writes: Table
    rows: Rows = field(repr=False)
    final: str
    """Which of its rows are final, and when; for docs."""
    late: str
    """What becomes of late rows; for docs."""
    reads: tuple[Table, ...] = ()
    """The tables it reads, one entry for each time it reads one; none: it reads what arrives from outside."""
    state: tuple[StateSetting, ...] = ()
    """The settings that its state depends on, and what a change of each means for a checkpoint."""
    state_format: int = 1
    """Raised whenever a change of the code makes earlier checkpoints unusable."""
    operator: str = "none"
    """The stateful operator, for docs."""
    output_mode: str = "append"
    """How rows get into the table: ``append``, or merged by key; for docs."""
    outputs: "Callable[[Settings, Lake, Manifest | None], Sequence[Output]] | None" = field(default=None, repr=False)
    """Where its batches go, given the manifest of its checkpoint; by default they are appended to its table."""
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Spark settings that it needs beyond those of every query."""
    open_events: "Callable[[ResumePoint], DataFrame] | None" = field(default=None, repr=False)
    """The events that its state held at a position, with the columns of silver; None: it has no state."""
    known_state: "Callable[[ResumePoint], DataFrame] | None" = field(default=None, repr=False)
    """What its state held beside open events, as ``rows`` takes it for the initial state; None: nothing."""
    reread: "Callable[[ResumePoint, Sequence[DataFrame]], Sequence[DataFrame]] | None" = field(default=None, repr=False)
    """Adapts the open events, a DataFrame at rest for each entry of ``reads``, before a reset gives them to ``rows``;
    None: they need no change."""
    write_rebuilt: "Callable[[ResumePoint], Callable[[DataFrame], None] | None] | None" = field(
        default=None, repr=False
    )
    """At a reset, writes those rows that the open events give at once and the table does not have, because the settings
    changed; None: it has them all."""
    final_before_ms: "Callable[[ResumePoint], int]" = field(default=lambda _: 0, repr=False)
    """For the manifest that a reset writes, see :attr:`spark_jobs.queries.manifest.Manifest.final_before_ms`."""
    initial_state: InitialState | None = None
    """The state that it can be given at its first start; None: it always starts empty."""
    closes_after: Callable[[Settings], timedelta] = field(default=lambda _: timedelta(), repr=False)
    """How far event time must pass an event until every row that the event can affect has been emitted."""
    watermark: Callable[[Settings], timedelta | None] = field(default=lambda _: None, repr=False)
    """How far its watermark lies behind the newest event time that it has read; None: it has no watermark, because it
    keeps no state or goes by processing time."""
    open_since: "Callable[[ResumePoint, date], DataFrame] | None" = field(default=None, repr=False)
    """The events from a date on whose rows are open although the watermark has passed them, with the columns of silver.
    None: a row does not go on with its events, so the watermark alone tells what is closed."""
    grace: Callable[[Settings], timedelta] = field(default=lambda _: timedelta(), repr=False)
    """An event is late when the watermark has passed its time by so much, if not earlier."""
    correction: "Callable[[], Correction] | None" = field(default=None, repr=False)
    """Gives how its table is corrected when events came too late for it; None: it is not."""
    is_corrected: Callable[[Settings], bool] = field(default=lambda _: True, repr=False)
    """Whether anything can be late for it: not by processing time."""
    column_sources: Callable[[Settings], Mapping[str, Sequence[str]]] = field(default=lambda _: {}, repr=False)
    """By column of its table, the columns that it is computed of, where the settings decide; the table declares the
    rest."""
    is_in_ledger: bool = False
    """Whether the ledger follows its rows one by one, so that their state need not be counted."""
    is_followed: bool = False
    """Whether somebody may be waiting for its rows: with ``job.trigger = interval`` it polls for new rows at
    ``job.follow_interval`` and does not wait for ``job.trigger_interval``."""

    @property
    def table_read(self) -> Table | None:
        """The table it reads; None: it reads what arrives from outside."""
        return self.reads[0] if self.reads else None

    def state_settings(self, settings: Settings, source: str) -> dict[str, str]:
        """The settings that the state depends on, by name, as text.

        Args:
            settings: those of the start.
            source: FILES or KAFKA: what ``ingest`` reads.
        """
        return {one.name: one.text(settings, source) for one in self.state}
