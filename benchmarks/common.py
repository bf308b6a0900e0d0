"""Shared by the benchmarks: input events, and the adloom command."""

import sys
from pathlib import Path

from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec

ADLOOM = [sys.executable, "-c", "from spark_jobs.cli import main; main()"]
"""The ``adloom`` command of this checkout."""
_EVENTS_PER_FILE = 125_000


def make_events(events: int, folder: Path, *, users: int | None = None) -> int:
    """Writes ``events`` good events, some of them twice and none late, to ``folder``; returns the record count."""
    files = max(1, events // _EVENTS_PER_FILE)
    spec = GeneratorSpec(events=events, seed=1, late=0, malformed=0, files=files, users=users)
    return generate(spec, folder).records
