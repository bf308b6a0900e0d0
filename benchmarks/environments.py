"""Environments for peers and tools: what they need does not go together, nor with the project's own."""

import hashlib
import subprocess
import sys
import venv

from benchmarks.common import CACHE

_PACKAGES = {
    "flink": ("apache-flink==2.3.0",),
    "pathway": ("pathway==0.33.0",),
    "polars": ("polars==1.37.1",),
    "py-spy": ("py-spy==0.4.1",),
}
"""By environment."""


def python_of(name: str) -> str:
    """The interpreter of the environment ``name``, which is made where it is not there yet.

    Raises:
        subprocess.CalledProcessError: a package cannot be had.
    """
    packages = _PACKAGES[name]
    digest = hashlib.sha256("\n".join((sys.version, *packages)).encode()).hexdigest()[:16]
    folder = CACHE / f"environment-{name}-{digest}"
    python, done = folder / "bin" / "python", folder / "complete"
    if not done.exists():
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(pip, check=True)
        done.touch()
    return str(python)
