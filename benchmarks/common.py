"""What several benchmarks need: events to read, and the command."""

import os
import sys
from pathlib import Path

from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec

ADLOOM = [sys.executable, "-c", "from spark_jobs.cli import main; main()"]
"""The command ``adloom`` of this checkout."""
CACHE = Path(os.environ.get("ADLOOM_CACHE") or Path.home() / ".cache" / "adloom")
"""Where what is fetched is kept, as `make setup` does."""
_EVENTS_PER_FILE = 125_000


def make_events(events: int, folder: Path, *, users: int | None = None) -> int:
    """Makes ``events`` good events, some sent twice, none late, in files in ``folder``. Returns how many records."""
    files = max(1, events // _EVENTS_PER_FILE)
    spec = GeneratorSpec(events=events, seed=1, late=0, malformed=0, files=files, users=users)
    return generate(spec, folder).records
