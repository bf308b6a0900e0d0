"""How far credit can be computed, and whether a run has work: from notes and logs, without Spark.

::

    watermark of attribute      ──────────────────────────────┤ 12:00
    every touch is there up to  ─────────────────────┤ 11:00        attribute.window 1h
    conversions are due up to   ─────────────────────┤ 11:00

An impression can be clicked until the window ends; only then it is certain whether the touch is a click or a view.
Each run looks at everything that silver got since the last one, so it also finds conversions that come later.
"""

from spark_jobs.config.durations import ROUNDING
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import CONVERSION
from spark_jobs.contract.tables import ATTRIBUTIONS, MARKS, SILVER_EVENTS
from spark_jobs.credit.plan import CREDIT_PLANS, CREDIT_SEEN, CreditHorizon, CreditPlan, CreditSeen
from spark_jobs.errors import LakeError
from spark_jobs.lake.batches import read_batches
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import commits
from spark_jobs.lake.records import find_record, write_record
from spark_jobs.queries.attribute.query import QUERY as ATTRIBUTE
from spark_jobs.queries.notes import last_note
from spark_jobs.restatements.plan import PlanKind, RepairPlan
from spark_jobs.restatements.plans import GOLD_PLANS


def due_until(lake: Lake, settings: Settings) -> CreditHorizon | None:
    """How far credit can be computed; None: no conversion is due, because no watermark has advanced yet."""
    repair = GOLD_PLANS.last_done(lake)  # read before the tables: later repairs are for the next run
    attributions, silver = (lake.newest_commit(table.path) for table in (ATTRIBUTIONS, SILVER_EVENTS))
    if attributions is None or silver is None:
        return None
    note = last_note(lake, ATTRIBUTE.name, until=attributions)
    if note is None or note.watermark is None:
        return None
    marks = lake.newest_commit(MARKS.path)
    return CreditHorizon(
        until=note.watermark - settings.attribute.window - ROUNDING,
        silver_version=silver,
        attributions_version=attributions,
        repair=repair,
        marks_version=-1 if marks is None else marks,
    )


def last_run(lake: Lake) -> CreditPlan | None:
    """The last complete run that was not of a window: the next one continues from it. None: no such run."""
    new = (plan for plan in CREDIT_PLANS.newest_first(lake) if not plan.is_window)
    return next((plan for plan in new if CREDIT_PLANS.is_whole(lake, plan.number)), None)


def has_work(lake: Lake, settings: Settings) -> bool:
    """Whether a run would find anything: conversions that are due, late ones, touches that were repaired, new marks.

    If not, remembers how far it looked. An interrupted run counts as work.
    """
    last, reach = last_run(lake), due_until(lake, settings)
    if CREDIT_PLANS.unfinished(lake):
        return True
    if reach is None:
        return False
    seen = find_record(lake, CREDIT_SEEN, CreditSeen)
    if last is None or seen is None or _has_repaired(lake, last.reach.repair, reach.repair):
        return True
    if _has_new_marks(lake, last.reach, seen, reach):
        return True
    has_more = _has_conversions(lake, seen.silver_version, reach.silver_version)
    waits = seen.waits or has_more
    if has_more or (waits and reach.until > last.reach.until):
        return True
    looked = seen_of(reach, waits=waits)
    if looked != seen:
        write_record(lake, CREDIT_SEEN, looked)
    return False


def seen_of(reach: CreditHorizon, *, waits: bool) -> CreditSeen:
    """The record that the tables were read up to ``reach``."""
    return CreditSeen(silver_version=reach.silver_version, waits=waits, marks_version=reach.marks_version)


def _has_repaired(lake: Lake, since: int, until: int) -> bool:
    """Whether repairs and replays after number ``since`` have applied late events, or changed attributions."""
    plans = (GOLD_PLANS.read(lake, number) for number in range(since + 1, until + 1))
    return any(plan is None or _may_change_touches(plan) for plan in plans)  # nobody knows what one did that is gone


def _may_change_touches(plan: RepairPlan) -> bool:
    # Marks change columns that no touch has.
    is_own = plan.kind is not PlanKind.MARKS
    return is_own and (plan.late_events > 0 or plan.changes_of(ATTRIBUTIONS.name) > 0)


def _has_new_marks(lake: Lake, last: CreditHorizon, seen: CreditSeen, reach: CreditHorizon) -> bool:
    """Whether marks were set or revoked since the last run; True if the log of their table no longer shows it."""
    if last.marks_version < 0:
        return reach.marks_version >= 0
    try:
        new = commits(lake, MARKS, max(last.marks_version, seen.marks_version) + 1, reach.marks_version)
        return any(file.rows != 0 for commit in new for file in commit.added)
    except LakeError:
        return True


def _has_conversions(lake: Lake, since: int, until: int) -> bool:
    """Whether silver got conversions after version ``since``; True if that is no longer known."""
    silver = read_batches(lake, SILVER_EVENTS, lambda found: found.begins <= since + 1)
    return since + 1 < silver.begins or any(CONVERSION in batch.event_types for batch in silver.of(since + 1, until))
