"""A streaming query, declared once: everything that the rest of adloom has to know about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from types import MappingProxyType
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


@dataclass(frozen=True)
class InitialState:
    """State that a query can be given at its first start, as a table or file that a setting names."""

    setting: str
    """Its name, as in ``moving_average.initial_state``."""
    columns: str
    """Of the table or file, as a Spark SQL schema."""
    meaning: str
    """The meaning of a row; for docs."""
    choices: Callable[[Settings], Mapping[str, Sequence[str]]] = field(default=lambda _: {}, repr=False)
    """By column, the values that it may have; other columns may have any."""
    known: "Callable[[Settings, DataFrame], DataFrame] | None" = field(default=None, repr=False)
    """From its rows to the initial state that :meth:`Query.rows` takes; None: its rows are events, and join those of
    the first batch."""
    depends_on: tuple[str, ...] = ()
    """Settings that its rows belong to: a reset that changes one of them leaves the initial state behind."""


class Query:
    """A streaming query: one checkpoint, one table, and what else its batches are written to.

    Each is the object ``QUERY`` of a subclass, in the module ``query`` of its folder; this class has the defaults. DAG
    files read the attributes, so such a module imports Spark within methods only.
    """

    name: str
    job: str
    """Name of the job that runs it, one of :data:`spark_jobs.queries.jobs.JOBS`."""
    writes: Table
    final: str
    """Which of its rows are final, and when; for docs."""
    late: str
    """The fate of late rows; for docs."""
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
    spark_conf: Mapping[str, str] = MappingProxyType({})
    """Spark settings that it needs beyond those of every query."""
    initial_state: InitialState | None = None
    """The state that it can be given at its first start; None: it always starts empty."""
    is_correctable: bool = False
    """Whether its table is corrected when events came too late for it: see :meth:`correction`."""
    outlives_watermark: bool = False
    """Whether a row can still grow although the watermark has passed its events: see :meth:`open_events_since`."""
    rows_in_ledger: bool = False
    """Whether the ledger follows its rows one by one, so that their state need not be counted."""
    polls_often: bool = False
    """Whether somebody may be waiting for its rows: with ``job.trigger = interval`` it polls for new rows at
    ``job.follow_interval`` and does not wait for ``job.trigger_interval``."""

    def rows(self, settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
        """Its rows, with the columns of the table that it writes.

        Args:
            settings: those of the start.
            sides: a streaming DataFrame for each entry of ``reads``; if it has none, one of what arrives from outside.
            initial: the initial state; None: it starts empty.
        """
        raise NotImplementedError

    def outputs(self, settings: Settings, lake: "Lake", manifest: "Manifest | None") -> "Sequence[Output] | None":
        """The places each batch is written to, in this order; ``manifest`` is that of its checkpoint.

        None: they are appended to its table, and to nothing else.
        """
        return None

    def watermark(self, settings: Settings) -> timedelta | None:
        """How far its watermark lies behind the newest event time that it has read.

        None: it has no watermark, because it keeps no state or uses processing time.
        """
        return None

    def closes_after(self, settings: Settings) -> timedelta:
        """How far event time must pass an event until every row that the event can affect has been emitted."""
        return timedelta()

    def extra_delay(self, settings: Settings) -> timedelta:
        """How far the watermark may pass an event before the event counts as late."""
        return timedelta()

    def column_sources(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """By column of its table, its source columns where settings decide them; the table declares the rest."""
        return {}

    def open_events(self, at: "ResumePoint") -> "DataFrame":
        """The events that its state held at a resume point, with the columns of silver."""
        raise NotImplementedError

    def known_state(self, at: "ResumePoint") -> "DataFrame | None":
        """The state it held besides open events, as :meth:`rows` takes it for the initial state; None: nothing."""
        return None

    def adapt_for_reset(self, at: "ResumePoint", sides: "Sequence[DataFrame]") -> "Sequence[DataFrame]":
        """The open events, a DataFrame at rest for each entry of ``reads``, as a reset gives them to :meth:`rows`."""
        return sides

    def write_rebuilt(self, at: "ResumePoint") -> "Callable[[DataFrame], None] | None":
        """Writes the rows that a reset emits at once and the table lacks, because the settings changed.

        None: the table has them all.
        """
        return None

    def final_before_ms(self, at: "ResumePoint") -> int:
        """For the manifest that a reset writes: see :attr:`spark_jobs.queries.manifest.Manifest.final_before_ms`."""
        return 0

    def correction(self) -> "Correction":
        """How its table is corrected when events came too late for it."""
        raise NotImplementedError

    def is_corrected(self, settings: Settings) -> bool:
        """Whether its table is corrected under ``settings``: in processing time nothing can be late."""
        return self.is_correctable

    def open_events_since(self, at: "ResumePoint", day: date) -> "DataFrame":
        """The events from ``day`` on whose rows can still grow, with the columns of silver."""
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """Its task in one sentence: the docstring of its class; for help and docs."""
        return type(self).__doc__ or ""

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
