"""The folder for downloads and builds: of adloom itself, of `make setup`, of the tests and of the benchmarks."""

import os
from pathlib import Path

CACHE = Path(os.environ.get("ADLOOM_CACHE") or Path.home() / ".cache" / "adloom")
