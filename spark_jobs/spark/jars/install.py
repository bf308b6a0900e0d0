"""Assembles the folder of jars that Spark needs besides its own: those of ``jars.lock``, and adloom's, compiled.

``python -m spark_jobs.spark.jars.install [TARGET]`` makes TARGET such a folder; by default the one in the cache, which
adloom fills by itself when it first starts Spark. The modules of this folder, except ``ready``, import nothing but
Python's own library and each other, so that set-up and images can run them before adloom itself is installed.
"""

import fcntl
import hashlib
import os
import shutil
import stat
import sys
from pathlib import Path

from spark_jobs.spark.jars.cache import CACHE
from spark_jobs.spark.jars.compile import ADLOOM_JAR, CompileError, compile_jar
from spark_jobs.spark.jars.fetch import FetchError, differing, fetch, say
from spark_jobs.spark.jars.lock import LOCK, LockError, digest, read_lock

_HERE = Path(__file__).parent
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_SOURCES = _HERE / "java"


class InsecureError(Exception):
    """Raised when others could change the jars that Java would run."""


def folder_in_cache() -> Path:
    """The folder of jars in the user's cache. A version of adloom with other jars has another one."""
    made_of = (_HERE / LOCK, _HERE / "compile.py", *sorted(_SOURCES.rglob("*.java")))
    return CACHE / f"spark-{hashlib.sha256(''.join(map(digest, made_of)).encode()).hexdigest()[:16]}"


def is_sound(target: Path) -> bool:
    """Whether ``target`` holds exactly the locked jars and adloom's own, and nobody else could have changed them.

    Java runs what lies there as this user. Of adloom's own jar, which is compiled here, no digest is known: there the
    owner alone counts.
    """
    try:
        is_own = all(map(_is_own, (target.parent, target, *target.iterdir())))
        return is_own and differing(read_lock(_HERE), target) == [ADLOOM_JAR]
    except OSError:
        return False


def _is_own(path: Path) -> bool:
    found = path.lstat()
    return not path.is_symlink() and found.st_uid in (os.getuid(), 0) and not found.st_mode & _OTHERS_WRITE


def install(target: Path) -> None:
    """Makes ``target`` a folder of all jars, at once and as a whole; quick if it is one that can be trusted.

    Raises:
        InsecureError: somebody else can change what lies in the folder of ``target``.
        FetchError: a jar cannot be fetched, or is not the one that was locked.
        LockError: jars.lock was made from another pom.xml.
        CompileError: adloom's own jar cannot be compiled.
        OSError: the cache or the folder of ``target`` cannot be written.
    """
    if is_sound(target):
        return
    for folder in (CACHE, target.parent):
        folder.mkdir(parents=True, exist_ok=True)
        _close(folder)
    with (CACHE / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # jobs that start together fetch once
        if is_sound(target):
            return
        fetched = CACHE / f"jars-{digest(_HERE / LOCK)[:16]}"
        fetch(_HERE, fetched)
        draft = target.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(fetched, draft)
        if changed := differing(read_lock(_HERE), draft):
            raise FetchError(f"{changed[0]} in {fetched} was changed while it was copied; remove that folder")
        compile_jar(_SOURCES, draft)
        for path in (draft, *draft.iterdir()):
            _close(path)
        former = target.with_suffix(".former")
        shutil.rmtree(former, ignore_errors=True)
        if target.exists():
            say(f"{target} is replaced: its jars are not those that were installed, or others could change them")
            target.rename(former)  # jobs that run may still need a moment of it
        draft.rename(target)
        shutil.rmtree(former, ignore_errors=True)


def _close(path: Path) -> None:
    """Takes from others the right to write to ``path``, which must be this user's or root's.

    Raises:
        InsecureError: it is somebody else's.
    """
    found = path.stat()
    if found.st_uid == os.getuid():
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS_WRITE)
    elif found.st_uid or found.st_mode & _OTHERS_WRITE:
        raise InsecureError(
            f"{path} belongs to user {found.st_uid}, or all may write to it: Java would run what others put there; set "
            "ADLOOM_CACHE to a folder of your own"
        )


if __name__ == "__main__":
    try:
        install(Path(sys.argv[1]) if len(sys.argv) > 1 else folder_in_cache())
    except (FetchError, LockError, CompileError, InsecureError) as error:
        sys.exit(f"adloom: {error}")
