"""Runs a command and measures its whole process tree."""

import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_SAMPLE_S = 0.2


@dataclass(frozen=True)
class Cost:
    """``wall_s`` and ``cpu_s`` in seconds, over all processes; ``peak_mib`` is their largest total resident memory."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def run_measured(command: list[str], log: Path, *, servers: Sequence[int] = ()) -> Cost:
    """Runs ``command`` to its end and writes its output to ``log``.

    What the processes ``servers`` and their children use meanwhile counts too.

    Raises:
        subprocess.CalledProcessError: the command failed.
    """
    start, cpu, peak = time.monotonic(), {}, 0
    spent_before, ended_before = sum(cpu_seconds(server) for server in servers), _of_ended()
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        while process.poll() is None:
            resident = 0
            for member in [found for root in (process.pid, *servers) for found in _tree(root)]:
                try:
                    times = member.cpu_times()
                    cpu[member.pid] = times.user + times.system
                    resident += member.memory_info().rss
                except psutil.Error:
                    continue
            peak = max(peak, resident)
            time.sleep(_SAMPLE_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    # Processes shorter than a sample interval are counted once reaped by their parent.
    spent = max(sum(cpu.values()) - spent_before, _of_ended() - ended_before)
    return Cost(time.monotonic() - start, spent, peak / 2**20)


def _of_ended() -> float:
    """CPU seconds of this process's ended children, and of the children those reaped."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_seconds(pid: int) -> float:
    """CPU seconds used so far by ``pid`` and the processes below it; ended ones do not count."""
    spent = 0.0
    for member in _tree(pid):
        try:
            times = member.cpu_times()
        except psutil.Error:
            continue
        spent += times.user + times.system
    return spent


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []
