"""Java, the jars, memory and disk of this machine."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from spark_jobs import __version__
from spark_jobs.operations.doctor.description import Check, Finding, Subject, fine, warning, wrong
from spark_jobs.queries.jobs import JOB_NAMES
from spark_jobs.spark.conf import is_one_process
from spark_jobs.spark.jars.ready import jars_folder, mending
from spark_jobs.spark.java import check_java

_GIB = 1 << 30
_LEAST_FREE, _LEAST_SHARE = 2 * _GIB, 0.05
"""Below either, a batch, a compaction or MinIO soon fails."""
_UNITS = {"m": 1 << 20, "g": _GIB}


def _look(subject: Subject) -> Iterator[Finding]:
    check_java()
    python = ".".join(map(str, sys.version_info[:3]))
    yield fine(f"adloom {__version__} on Python {python}, with a Java that Spark runs on")
    yield from _jars(jars_folder())
    yield from _memory(subject)
    places = {Path(tempfile.gettempdir()): "temporary files and state of running queries"}
    if subject.lake.is_local:
        # A missing folder of a lake will be created in an existing one.
        place = next(place for place in (subject.lake.path, *subject.lake.path.parents) if place.exists())
        places.setdefault(place, "the lake")
    for place, what in places.items():
        yield _disk(place, what)


def _jars(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        now = "Spark's first start fetches them; to fetch them now, run `python -m spark_jobs.spark.jars.install`"
        yield warning(f"no folder {folder}: the jars have not been fetched yet", now)
    elif not any(folder.glob("delta-spark_*.jar")):
        yield wrong(f"no Delta jar in {folder}: Spark cannot write tables", mending())
    elif not (folder / "adloom.jar").is_file():
        slow = "batches get slower with the age of tables and with the state of deduplicate"
        yield warning(f"no adloom.jar in {folder}: {slow}", mending())


def _memory(subject: Subject) -> Iterator[Finding]:
    if not is_one_process(subject.settings):
        return
    heap = subject.settings.spark.driver_memory
    wanted = len(JOB_NAMES) * int(heap[:-1]) * _UNITS[heap[-1]]
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    text = f"{len(JOB_NAMES)} jobs with a heap of {heap} each, on a machine with {there / _GIB:.1f} GiB"
    if wanted > there:
        yield warning(f"{text}: together they may need more than there is", "lower spark.driver_memory")
    else:
        yield fine(text)


def _disk(place: Path, what: str) -> Finding:
    usage = shutil.disk_usage(place)
    text = f"{place} ({what}): {usage.free / _GIB:,.1f} of {usage.total / _GIB:,.1f} GiB free"
    if usage.free < _LEAST_FREE or usage.free < _LEAST_SHARE * usage.total:
        return warning(
            text, "free space: a full disk stops the jobs; nothing is lost, they continue once there is space"
        )
    return fine(text)


CHECK = Check(1, "machine", _look)
