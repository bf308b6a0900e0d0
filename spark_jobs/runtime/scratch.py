"""Folders for what Spark keeps on the machine's own disk: one for each process, and none for those that are gone.

Spark removes its folders when it ends well. A process that was killed leaves the working copies of its state behind,
hundreds of MB each time, until the disk is full.
"""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from spark_jobs.runtime import processes

_PREFIX = "adloom-scratch-"
_OWNERS = "owners.json"
_log = logging.getLogger(__name__)


def make_scratch() -> Path:
    """A new folder for this process, below ``SPARK_LOCAL_DIRS`` or the folder for temporary files.

    Those of this user's processes that are gone are removed on the way.
    """
    base = Path(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir())
    base.mkdir(parents=True, exist_ok=True)
    for folder in base.glob(f"{_PREFIX}*"):
        if _is_orphaned(folder):
            _log.info("removing %s: the process that it was made for is gone", folder)
            shutil.rmtree(folder, ignore_errors=True)
    # Until it names its owners nobody removes it.
    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    name_owners(made, [os.getpid()])
    return made


def name_owners(folder: Path, process_ids: Sequence[int]) -> None:
    """Says which processes use ``folder``: it is kept until the last of them is gone."""
    owners = {"here": processes.here(), "processes": {str(pid): processes.started(pid) for pid in process_ids}}
    whole = folder / f".{_OWNERS}"
    whole.write_text(json.dumps(owners), encoding="utf-8")
    whole.replace(folder / _OWNERS)


def _is_orphaned(folder: Path) -> bool:
    """Whether this user made ``folder``, on this machine, for processes that are gone; in doubt it is not."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return False
        owners = json.loads((folder / _OWNERS).read_text(encoding="utf-8"))
        if not owners["here"] or owners["here"] != processes.here():
            return False
        # One that was gone before its start could be told has none.
        return not any(begun and processes.started(int(pid)) == begun for pid, begun in owners["processes"].items())
    return False
