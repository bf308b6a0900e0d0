"""Identifying processes, even after they have ended."""

from pathlib import Path

_START_FIELD = 22 - 3
"""In /proc/<pid>/stat, counted from the field after the process name, which may contain anything."""


def here() -> str:
    """The scope in which process ids are unique: this boot of this machine and this PID namespace.

    Empty on systems other than Linux.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def started(process_id: int) -> str:
    """When the process started, in clock ticks since boot; tells reused ids apart. Empty if it is not running."""
    try:
        fields = (
            Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[_START_FIELD]
