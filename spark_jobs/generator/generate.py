"""From a spec to files of events."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.contracts.errors import SettingsError
from spark_jobs.generator.files import EventFiles
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.traffic import Traffic

_PROGRESS_STEP = 5000


@dataclass(frozen=True)
class GeneratedSummary:
    """What was written.

    ``records`` are lines: ``impressions`` + ``clicks`` + ``activity`` (the distinct good events) + ``duplicates`` + all
    of ``malformed``, which counts by the names in :data:`spark_jobs.generator.broken.BROKEN`. ``late`` and ``orphans``
    are among the good events; ``orphans`` are clicks that name an impression that does not exist. ``bytes`` is the
    size of the files on disk.
    """

    records: int
    impressions: int
    clicks: int
    activity: int
    duplicates: int
    late: int
    malformed: dict[str, int]
    orphans: int
    files: int
    bytes: int


def generate(spec: GeneratorSpec, out: Path, on_progress: Callable[[int], None] | None = None) -> GeneratedSummary:
    """Write the events of ``spec`` to ``events-00000.jsonl`` (or ``.jsonl.gz``) and so on in ``out``, as they arrive.

    Args:
        spec: what to generate; the same spec gives the same bytes.
        out: folder, made if need be. Each file appears when it is whole; file k has the modification time
            ``spec.start`` + k seconds.
        on_progress: called with the number of good events made so far, every few thousand and at the end.

    Raises:
        SettingsError: ``out`` cannot be written or holds events already.
    """
    traffic = Traffic(spec)
    files = EventFiles(out, spec.record_count, spec.files, int(spec.start.timestamp()), compress=spec.gzip)
    try:
        with files:
            _write(traffic, files, on_progress or (lambda _: None))
    except OSError as error:
        raise SettingsError(
            f"events cannot be written to {out}: {error.strerror}; "
            "free the space or give another folder, and remove what is there before the next try"
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
        duplicates=delivery.duplicates,
        late=delivery.late,
        malformed=dict(delivery.broken.made),
        orphans=visits.orphans,
        files=len(files.written),
        bytes=files.bytes,
    )
