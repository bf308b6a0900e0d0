"""Jars of servers, from Maven, kept outside the checkout."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

_INFRA = Path(__file__).parents[2] / "infra"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"


def jars_of(server: str) -> Path:
    """The folder with the jars that ``infra/<server>/pom.xml`` names; fetched the first time."""
    pom = _INFRA / server / "pom.xml"
    cache = Path(os.environ.get("ADLOOM_CACHE", str(Path.home() / ".cache" / "adloom")))
    jars = cache / f"{server}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:16]}"
    if not jars.is_dir():
        fetched = jars.with_suffix(".new")
        shutil.rmtree(fetched, ignore_errors=True)
        maven = ["mvn", "--batch-mode", "--quiet", "--file", str(pom), f"{_PLUGIN}:copy-dependencies"]
        subprocess.run([*maven, f"-DoutputDirectory={fetched}", "-DincludeScope=runtime"], check=True, timeout=600)
        fetched.rename(jars)
    return jars
