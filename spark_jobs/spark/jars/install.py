"""Assembles the folder of jars that Spark needs besides its own: those of ``jars.lock``, and adloom's, compiled.

``python -m spark_jobs.spark.jars.install [TARGET]`` makes TARGET such a folder; by default the one in the cache, which
adloom fills by itself when it first starts Spark. The modules of this folder, except ``ready``, import nothing but
Python's own library and each other, so that set-up and images can run them before adloom itself is installed.
"""

import fcntl
import hashlib
import shutil
import sys
from pathlib import Path

from spark_jobs.spark.jars.cache import CACHE
from spark_jobs.spark.jars.compile import CompileError, compile_jar
from spark_jobs.spark.jars.fetch import FetchError, fetch
from spark_jobs.spark.jars.lock import LOCK, LockError, digest

_HERE = Path(__file__).parent
_SOURCES = _HERE / "java"


def folder_in_cache() -> Path:
    """The folder of jars in the user's cache. A version of adloom with other jars has another one."""
    made_of = (_HERE / LOCK, _HERE / "compile.py", *sorted(_SOURCES.rglob("*.java")))
    return CACHE / f"spark-{hashlib.sha256(''.join(map(digest, made_of)).encode()).hexdigest()[:16]}"


def install(target: Path) -> None:
    """Makes ``target`` a folder of all jars, at once and as a whole; does nothing if it exists.

    Raises:
        FetchError: a jar cannot be fetched, or is not the one that was locked.
        LockError: jars.lock was made from another pom.xml.
        CompileError: adloom's own jar cannot be compiled.
        OSError: the cache or the folder of ``target`` cannot be written.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with (CACHE / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # jobs that start together fetch once
        if target.is_dir():
            return
        fetched = CACHE / f"jars-{digest(_HERE / LOCK)[:16]}"
        fetch(_HERE, fetched)
        draft = target.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(fetched, draft)
        compile_jar(_SOURCES, draft)
        draft.rename(target)


if __name__ == "__main__":
    try:
        install(Path(sys.argv[1]) if len(sys.argv) > 1 else folder_in_cache())
    except (FetchError, LockError, CompileError) as error:
        sys.exit(f"adloom: {error}")
