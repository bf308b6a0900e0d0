"""Writes the events of a spec to files."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.errors import SettingsError
from spark_jobs.generator.files import EventFiles
from spark_jobs.generator.labels import LabelFile
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.traffic import Traffic

_PROGRESS_STEP = 5000


@dataclass(frozen=True)
class GeneratedSummary:
    """Counts of what was written.

    ``records`` counts lines: ``impressions`` + ``clicks`` + ``activity`` + ``conversions`` (the distinct good events) +
    ``duplicates`` + all ``malformed``, which are counted by their names in
    :data:`spark_jobs.generator.broken.BROKEN`. ``late`` and ``orphans`` are among the good events; ``orphans`` are
    clicks whose impression does not exist, and ``bots`` what bots did. ``repeats`` and ``refunds`` are among the
    conversions: the order of an earlier one again, and what revokes an earlier one. ``bytes`` is the size of the files
    on disk.
    """

    records: int
    impressions: int
    clicks: int
    activity: int
    conversions: int
    repeats: int
    refunds: int
    duplicates: int
    late: int
    malformed: dict[str, int]
    orphans: int
    bots: int
    files: int
    bytes: int


def generate(spec: GeneratorSpec, out: Path, on_progress: Callable[[int], None] | None = None) -> GeneratedSummary:
    """Writes the events of ``spec``, in order of arrival, to ``events-00000.jsonl`` (or ``.jsonl.gz``) etc. in ``out``.

    If there are bots, the labels of their events go to :data:`spark_jobs.generator.labels.LABELS` below ``out``.

    Args:
        spec: what to generate; equal specs give equal bytes.
        out: the folder, created if missing. Each file appears once it is complete; file k has the modification time
            ``spec.start`` + k seconds.
        on_progress: called with the number of good events generated so far, every few thousand and at the end.

    Raises:
        SettingsError: ``out`` cannot be written or already contains events.
    """
    begin = int(spec.start.timestamp())
    files = EventFiles(out, spec.record_count, spec.files, begin, compress=spec.gzip)
    try:
        with files, LabelFile(out, begin) if spec.bots else nullcontext() as labels:
            traffic = Traffic(spec, labels.write) if labels else Traffic(spec)
            _write(traffic, files, on_progress or (lambda _: None))
    except OSError as error:
        raise SettingsError(
            f"events cannot be written to {out}: {error.strerror}; "
            "free some space or choose another folder, and remove its files before you try again"
        ) from error
    return _summary(traffic, files, spec.record_count)


def _write(traffic: Traffic, files: EventFiles, on_progress: Callable[[int], None]) -> None:
    reported = 0
    for lines in traffic.chunks():
        files.write(lines)
        if traffic.visits.made - reported >= _PROGRESS_STEP:
            reported = traffic.visits.made
            on_progress(reported)
    if traffic.visits.made != reported:
        on_progress(traffic.visits.made)


def _summary(traffic: Traffic, files: EventFiles, records: int) -> GeneratedSummary:
    visits, delivery = traffic.visits, traffic.delivery
    return GeneratedSummary(
        records=records,
        impressions=visits.impressions,
        clicks=visits.clicks,
        activity=visits.activity,
        conversions=visits.conversions.made,
        repeats=visits.conversions.repeats,
        refunds=visits.conversions.refunds,
        duplicates=delivery.duplicates,
        late=delivery.late,
        malformed=dict(delivery.broken.made),
        orphans=visits.orphans,
        bots=visits.bots.made,
        files=len(files.written),
        bytes=files.bytes,
    )
