"""Servers written in Go, built once and kept in a cache outside the checkout."""

import os
import shutil
import subprocess
from pathlib import Path

from spark_jobs.spark.jars.cache import CACHE

MINIO = ("minio", "github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c")
ALERTMANAGER = ("alertmanager", "github.com/prometheus/alertmanager/cmd/...", "v0.28.1")
"""Its tool for operators, ``amtool``, lies beside it."""
TOXIPROXY = ("server", "github.com/Shopify/toxiproxy/v2/cmd/server", "v2.5.0")
_BUILD_S = 1800


def built(program: tuple[str, str, str]) -> Path:
    """The path of a program (name, module, version), built the first time; MinIO takes minutes."""
    name, module, version = program
    place = CACHE / f"{module.split('/')[2]}-{version}"
    if not (place / name).exists():
        draft = place.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        settings = {"GOBIN": str(draft), "CGO_ENABLED": "0", "GOFLAGS": "-modcacherw"}
        command = ["go", "install", "-trimpath", "-ldflags", "-s -w", f"{module}@{version}"]
        subprocess.run(command, env={**os.environ, **settings}, check=True, timeout=_BUILD_S)
        draft.rename(place)
    return place / name


if __name__ == "__main__":  # before the tests, whose timeouts are shorter than a build
    for each in (MINIO, TOXIPROXY, ALERTMANAGER):
        print(f"{each[1]} {each[2]}: {built(each)}", flush=True)
