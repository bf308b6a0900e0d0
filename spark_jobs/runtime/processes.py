"""Telling processes apart, also after they have ended."""

from pathlib import Path

_START_FIELD = 22 - 3
"""Of /proc/<pid>/stat, counted from the field after the name; which may hold anything."""


def here() -> str:
    """What process numbers are unique within: this start of this machine, and its containers apart.

    Empty where the system does not tell (other than Linux).
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def started(process_id: int) -> str:
    """When the process was started, in the machine's own count; empty if there is none: numbers are used again."""
    try:
        fields = (
            Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[_START_FIELD]
