"""Marks events as invalid traffic: applies a set of rules and compares the result with the existing marks.

::

    silver, silver/late_events ──▶ marks as they should be ─┐
                                   silver/marks: those that ├─▶ rows that mark, rows that revoke ──▶ silver/marks
                                   hold                    ─┘

Gross never changes: marking changes no event and no other table. :mod:`spark_jobs.restatements.marks_to_gold` brings
marks to the net columns of gold.

**In the end equal.** The marks of a period depend on the rules and on its events and those around it, not on how these
arrived. So applying rules A, then B, then A again gives the marks of A.

**Exactly once.** A marking is one commit, under a lock. Its note names the set of rules, which was written before, and
how far the marking came. A marking that is killed before the commit has changed nothing; one that is killed after it
only has yet to name the rules in ``_rules/active.json``, which the next one does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import EPOCH, microseconds, time_of_us
from spark_jobs.contract.tables import ATTRIBUTIONS, MARKS
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.lock import Check
from spark_jobs.lake.notes import CommitNote
from spark_jobs.marks.model import Marking, NetChange, TimeSpan
from spark_jobs.marks.rules_in_use import current_user, keep_rules, last_marking, name_rules_in_use, read_rules
from spark_jobs.marks.scope import KnownSilver, dates_of, is_in, merged, new_spans, read_marks_of
from spark_jobs.marks.totals import net_changes, summed
from spark_jobs.places import MARKS_WRITER
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from spark_jobs.traffic_rules.evaluate import active_marks, expected_marks, mark_changes
from spark_jobs.traffic_rules.reached import Reached, RulesInUse
from spark_jobs.traffic_rules.rule_files import load_rules
from spark_jobs.traffic_rules.rules import RuleSet

OnStep = Callable[[str], None]


def apply_marks(
    lake: OpenLake,
    rules: RuleSet | None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    dry_run: bool = False,
    on_step: OnStep = lambda _line: None,
) -> Marking:
    """Marks the events from ``since`` to ``until`` by ``rules``, and puts these rules in use.

    Jobs may be running.

    Args:
        lake: the lake.
        rules: the rules; None: those in use, or the default ones.
        since: with zone; None: from the first event on.
        until: with zone; None, or later than silver is complete: up to where it is.
        dry_run: only report what would change.
        on_step: called with a line of text at every step.

    Raises:
        SettingsError: ``until`` is not after ``since``.
        LakeError: silver is missing, or has no watermark yet.
        LakeInUseError: another process is marking.
        RulesError: the default rules need a list that is not installed.
    """
    if since and until and since >= until:
        raise SettingsError(f"--to {until.isoformat()} is not after --from {since.isoformat()}; swap them")
    with lake.hold(MARKS_WRITER) as check_lock:
        on_step("looking how far events are known")
        now = KnownSilver.of(lake)
        if now is None:
            raise LakeError(f"no event of {lake.shown()} is known yet: silver has no watermark; run its jobs first")
        reach = lake.settings.attribute.window
        marker = _Marker(lake, now, check_lock, on_step, reach, dry_run=dry_run)
        first, last = since or now.begin, min(until or now.until, now.until)
        is_whole = (since is None or since <= now.begin) and last == now.until
        return marker.mark(rules, merged([TimeSpan(first, last)]), is_up_to_date=is_whole)


def update_marks(lake: OpenLake, *, on_step: OnStep = lambda _line: None) -> Marking | None:
    """Marks new events by the rules in use, or the default ones, up to the watermark of ``deduplicate``.

    Marks that late events change are updated too. The first update marks all events. Jobs may be running.

    Returns:
        The changes; None: nothing is new.

    Raises:
        LakeInUseError: another process is marking.
        RulesError: the default rules need a list that is not installed.
    """
    with lake.hold(MARKS_WRITER) as check_lock:
        on_step("looking for what is new")
        now = KnownSilver.of(lake)
        if now is None:
            return None
        marker = _Marker(lake, now, check_lock, on_step, lake.settings.attribute.window, dry_run=False)
        before = marker.before
        if before is None or before.until_us is None:
            spans = merged([TimeSpan(now.begin, now.until)])
        else:
            spans = new_spans(lake, now, before, read_rules(lake, before.in_use.digest).reach)
        return marker.mark(None, spans, is_up_to_date=True) if spans else None


@dataclass(frozen=True)
class _Last:
    """The last commit of ``silver/marks``."""

    number: int = 0
    reached: Reached | None = None


class _Marker:
    """One marking, under the lock."""

    def __init__(
        self, lake: OpenLake, now: KnownSilver, check_lock: Check, on_step: OnStep, reach: timedelta, *, dry_run: bool
    ) -> None:
        self._lake, self._now, self._dry_run, self._reach = lake, now, dry_run, reach
        self._check_lock, self._on_step = check_lock, on_step
        self._last = _Last(*(last_marking(lake) or ()))
        if self.before and not dry_run:
            name_rules_in_use(lake, self.before.in_use)

    @property
    def before(self) -> Reached | None:
        """The progress of the last marking."""
        return self._last.reached

    def mark(self, rules: RuleSet | None, spans: list[TimeSpan], *, is_up_to_date: bool) -> Marking:
        """Marks the events in ``spans`` by ``rules``.

        Args:
            rules: None: those in use, or the default ones.
            spans: the times.
            is_up_to_date: whether all known events are marked afterwards.
        """
        if rules is None:
            rules = read_rules(self._lake, self.before.in_use.digest) if self.before else load_rules()
        reached = self._reached(rules, is_up_to_date=is_up_to_date)
        self._on_step(f"checking events against {len(rules.rules)} rules")
        # Every rule reads them.
        events = self._now.events(spans, rules.reach).persist()
        expected = expected_marks(events, rules, self._now.until).where(is_in(spans))
        rows = self._changes(expected, spans, time_of_us(reached.marked_at_us)).persist()
        try:
            changes = summed(rows, events)
            net = self._net(expected, spans) if self._dry_run else ()
            if not self._dry_run:
                self._write(rows, rules, reached)
        finally:
            rows.unpersist()
            events.unpersist()
        ends = (spans[0].since, spans[-1].until) if spans else (self._now.until,) * 2
        return Marking(rules.digest, *ends, changes, net)

    def _reached(self, rules: RuleSet, *, is_up_to_date: bool) -> Reached:
        now_us, before = microseconds(datetime.now(UTC) - EPOCH), self.before
        # Rows must be in the order of their times even if the clock is set back.
        marked_at_us = now_us if before is None else max(now_us, before.marked_at_us + 1)
        in_use = before.in_use if before and before.in_use.digest == rules.digest else None
        in_use = in_use or RulesInUse(digest=rules.digest, since=time_of_us(marked_at_us), by=current_user())
        if not is_up_to_date:
            known = before or Reached(in_use=in_use, marked_at_us=marked_at_us)
            return known.model_copy(update={"in_use": in_use, "marked_at_us": marked_at_us})
        return Reached(
            in_use=in_use,
            marked_at_us=marked_at_us,
            until_us=microseconds(self._now.until - EPOCH),
            silver_version=self._now.silver_version,
            repair=self._now.repair,
        )

    def _changes(self, expected: DataFrame, spans: list[TimeSpan], marked_at: datetime) -> DataFrame:
        return mark_changes(expected, self._active(expected, spans), marked_at)

    def _active(self, expected: DataFrame, spans: list[TimeSpan]) -> DataFrame:
        """The active marks in ``spans``, with the columns of ``expected``."""
        if not self._lake.has(MARKS):
            return expected.limit(0)
        return active_marks(read_marks_of(self._lake, MARKS, spans))

    def _net(self, expected: DataFrame, spans: list[TimeSpan]) -> tuple[NetChange, ...]:
        if not spans or not self._lake.has(ATTRIBUTIONS):
            return ()
        self._on_step("looking what gold would change by")
        # Either a click in these times is marked, or its impression, which is no older than the window.
        near = merged([TimeSpan(span.since - self._reach, span.until + self._reach) for span in spans])
        before = self._active(expected, near).persist()
        after = before.where(~is_in(spans)).unionByName(expected)
        rows = self._lake.read(ATTRIBUTIONS).where(F.col("event_date").isin(dates_of(near)))
        try:
            return net_changes(rows, before, after)
        finally:
            before.unpersist()

    def _write(self, rows: DataFrame, rules: RuleSet, reached: Reached) -> None:
        self._on_step(f"writing {MARKS.path}")
        keep_rules(self._lake, rules)
        self._check_lock()
        note = CommitNote(writer=MARKS_WRITER, batch=self._last.number + 1, reached=[reached.model_dump(mode="json")])
        append_rows(rows.repartition("event_date"), self._lake, MARKS, note)
        name_rules_in_use(self._lake, reached.in_use)
