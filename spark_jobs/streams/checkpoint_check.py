"""Whether a checkpoint and the table that its query writes agree on the batches done.

Spark trusts the files of a checkpoint. If one was deleted, restored from a backup, or altered but still readable, Spark
would skip batches or write them twice. The table's commits record what was written and how far the query had read, so a
mismatch can be detected.
"""

import json
from collections.abc import Callable
from typing import Any

from spark_jobs.config.durations import EPOCH, milliseconds
from spark_jobs.errors import CheckpointError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote, read_plan
from spark_jobs.queries.manifest import Manifest
from spark_jobs.queries.manifests import read_manifest
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key
from spark_jobs.streams.reports import read_report


def compare_with_table(lake: Lake, query: str) -> None:
    """Checks that the current checkpoint of ``query`` matches the last batch in its table.

    Raises:
        CheckpointError: it does not, or one of its files cannot be read.
    """
    note = last_note(lake, query)
    if note is None:
        return
    version = checkpoint_in_use(lake, query)
    checkpoint = checkpoint_key(query, version)
    if why := _disagreement(lake, query, version, note):
        raise CheckpointError(
            f"checkpoint {checkpoint} of {lake.root} does not match its table: {why}; rows would be lost or written "
            f"twice: restore its files, or start a new one with `adloom checkpoints reset {query}`"
        )


def _disagreement(lake: Lake, query: str, version: int, note: CommitNote) -> str:
    def read(name: str) -> bytes | None:
        return lake.files.read(f"{checkpoint_key(query, version)}/{name}")

    writer, manifest = _identity(read("metadata")), read_manifest(lake, query, version)
    has_not_written = manifest is not None and _follows(manifest, note)  # it was reset
    if not writer:
        # A reset of a query that reads topics leaves it to the first start to create the checkpoint.
        has_not_started = has_not_written and not checkpoint_batches(lake, query, version, "offsets")
        return "" if has_not_started else "its file metadata is missing or damaged"
    if note.writer != writer:
        return "" if has_not_written else "another checkpoint wrote the last batch in the table"
    return (
        _differs_at(read, note)
        or _is_ahead(checkpoint_batches(lake, query, version, "commits"), note)
        or _lost_time(lake, query, read, note.batch)
    )


def _follows(manifest: Manifest, note: CommitNote) -> bool:
    """Whether the checkpoint of ``manifest`` continues at ``note``.

    A driver that has lost its lock and does not know it may write one more batch after the reset, which the new
    checkpoint would read again.
    """
    return manifest.follows == note.writer and manifest.follows_batch in (None, note.batch)


def _identity(metadata: bytes | None) -> str:
    try:
        return str(json.loads(metadata or b"")["id"])
    except (ValueError, KeyError, TypeError):
        return ""


def _differs_at(read: Callable[[str], bytes | None], note: CommitNote) -> str:
    planned = read(f"offsets/{note.batch}")
    if planned is None:
        return f"offsets/{note.batch}, of the last batch in the table, is missing"
    try:
        plan = read_plan(planned)
    except ValueError:
        return f"offsets/{note.batch} is damaged"
    if (plan.watermark_ms, plan.reached) != (note.watermark_ms, note.reached):
        return f"offsets/{note.batch} and the table differ on the end or watermark of that batch"
    return ""


def _is_ahead(commits: list[int], note: CommitNote) -> str:
    done = max(commits, default=-1)
    if done > note.batch:
        return f"it has committed batch {done}, and the table ends with batch {note.batch}"
    if done < note.batch - 1:
        return (
            f"commits/{note.batch - 1} is missing: it has committed batch {done}, and the table has batch {note.batch}"
        )
    return ""


def _lost_time(lake: Lake, query: str, read: Callable[[str], bytes | None], batch: int) -> str:
    """Whether the watermark for the next batch lies past every event seen, or differs from the one planned."""
    done = read(f"commits/{batch}")
    if done is None:
        return ""
    try:
        next_ms = json.loads(done.splitlines()[1])["nextBatchWatermarkMs"]
        plan = read(f"offsets/{batch + 1}")
        planned_ms = read_plan(plan).watermark_ms if plan else next_ms
    except (ValueError, KeyError, TypeError, IndexError):
        return f"commits/{batch} or offsets/{batch + 1} is damaged"
    if planned_ms != next_ms:
        return f"commits/{batch} and offsets/{batch + 1} have different watermarks"
    newest_ms = _newest_ms(lake, query, batch)
    if newest_ms is not None and next_ms > newest_ms:
        return f"commits/{batch} has a watermark past every event seen"
    return ""


def _newest_ms(lake: Lake, query: str, batch: int) -> int | None:
    """The newest time that ``query`` has reported up to ``batch``; None if its report is about another batch."""
    report = read_report(lake, query)
    if report is None or report.batch_id != batch:
        return None
    times: list[Any] = [time for time in (report.newest_event_time, report.watermark) if time]
    if not times:
        return None
    return milliseconds(max(times) - EPOCH) + 1
