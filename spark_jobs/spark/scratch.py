"""Folders for Spark's files on the machine's own disk: one for each process, removed once the process has ended.

Spark removes its folders on a normal exit. A killed process leaves the working copies of its state behind, hundreds of
MB each time, until the disk is full.
"""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from spark_jobs.lake.lease import here, started

_PREFIX = "adloom-scratch-"
_OWNERS = "owners.json"
_log = logging.getLogger(__name__)


def make_scratch() -> Path:
    """A new folder, readable by this user only, below ``SPARK_LOCAL_DIRS`` or the folder for temporary files.

    First removes the folders of this user's processes that have ended.
    """
    base = Path(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir())
    base.mkdir(parents=True, exist_ok=True)
    for folder in base.glob(f"{_PREFIX}*"):
        if _is_orphaned(folder):
            _log.info("removing %s: its process has ended", folder)
            shutil.rmtree(folder, ignore_errors=True)
    # Nobody removes a folder that does not name its owners.
    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    name_owners(made, [os.getpid()])
    return made


def name_owners(folder: Path, process_ids: Sequence[int]) -> None:
    """Records which processes use ``folder``: it is kept until the last of them has ended."""
    owners = {"here": here(), "processes": {str(pid): started(pid) for pid in process_ids}}
    whole = folder / f".{_OWNERS}"
    whole.write_text(json.dumps(owners), encoding="utf-8")
    whole.replace(folder / _OWNERS)


def _is_orphaned(folder: Path) -> bool:
    """Whether ``folder`` belongs to this user, and to processes of this machine that have ended; if in doubt, False."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return False
        owners = json.loads((folder / _OWNERS).read_text(encoding="utf-8"))
        if not owners["here"] or owners["here"] != here():
            return False
        # A process that ended before its start time could be read has none.
        return not any(start and started(int(pid)) == start for pid, start in owners["processes"].items())
    return False
