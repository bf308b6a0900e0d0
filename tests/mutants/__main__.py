"""Puts faults into the code, one at a time, and says which of them no test notices: ``make mutants``.

A fault is shown to the tests that run its line, and if they do not notice it, to the slow ones of its room. Every
answer is kept at once in ``answers.json``, which is committed: runs on several machines add up, and one that was
interrupted goes on. Without that file they begin again. A fault that cannot be noticed, because no row changes with it,
is explained in ``explained.toml``.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from spark_jobs.spark.jars.cache import CACHE
from tests.mutants.covered import Covered
from tests.mutants.mutations import Mutation, draw, mutations_in
from tests.mutants.rooms import ROOMS, Room

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_ANSWERS, _EXPLAINED = _HERE / "answers.json", _HERE / "explained.toml"
_MEASURED = CACHE / "mutants"
"""Of each state of the code, which test runs which line."""
_SEED, _COUNT = 37, 200
_LIMIT_S, _SLOW_LIMIT_S = 1800, 2400
_KEEP_JAVA = "10min"
_WANTED = 0.95
_QUIET = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
"""The Java that is shared goes on after the test that has started it."""
_OPTIONS = ("-x", "-q", "--no-header", "--tb=no", "-rfE", *_QUIET)
_NO_TESTS = 5
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_SURVIVED, _QUICKLY = "survived", "survived the quick tests"


class _Workplaces:
    """Copies of the checkout, one for each fault that is tried at a time."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free = [folder / str(number) for number in range(count)]
        self._lock = threading.Lock()
        self._covered: dict[str, Covered] = {}
        listed = subprocess.run(["git", "ls-files"], cwd=_ROOT, check=True, capture_output=True, text=True).stdout
        tracked = [name for name in listed.splitlines() if (_ROOT / name).is_file()]
        for copy in self._free:
            for name in tracked:
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(_ROOT / name, copy / name)
        code = hashlib.sha256(b"".join((_ROOT / name).read_bytes() for name in tracked if name.endswith(".py")))
        self._measured = _MEASURED / code.hexdigest()[:16]

    def cover(self, room: Room) -> None:
        """Runs the tests of ``room`` on the code as it is, once, and keeps which of them run which line.

        Raises:
            SystemExit: a test fails. One that fails without any fault proves nothing.
        """
        file = self._measured / room.name
        if not file.exists():
            self._measure(room, file)
        self._covered[room.name] = Covered.read(file)

    def _measure(self, room: Room, file: Path) -> None:
        with self._one() as copy:
            sources = sorted({str(Path(path).parent).replace("/", ".") for path in room.sources(copy)})
            measured = [*(f"--cov={source}" for source in sources), "--cov-context=test", "--cov-report="]
            failed = _first_failure(copy, room, [*measured, *room.tests], limit_s=_LIMIT_S * 3)
            if failed:
                raise SystemExit(f"{failed} fails on the code as it is: mend it first")
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(copy / ".coverage", file)

    def answer(self, room: Room, fault: Mutation, *, slowly: bool) -> str:
        """The first test of ``room`` that notices ``fault``, a quick or a slow one; or that none does."""
        with self._one() as copy:
            source = (copy / fault.path).read_text()
            (copy / fault.path).write_text(fault.applied(source))
            try:
                if slowly:
                    return _first_failure(copy, room, list(room.tests), is_slow=True) or _SURVIVED
                chosen = self._covered[room.name].tests_of(fault.path, fault.line, room.tests)
                killer = _first_failure(copy, room, chosen) if chosen else ""
                if not killer and (room.runs_in_workers or not chosen):
                    killer = _first_failure(copy, room, list(room.tests))
                return killer or _QUICKLY
            finally:
                (copy / fault.path).write_text(source)

    @contextmanager
    def _one(self) -> Iterator[Path]:
        with self._lock:
            copy = self._free.pop()
        try:
            yield copy
        finally:
            with self._lock:
                self._free.append(copy)


def _first_failure(
    copy: Path, room: Room, arguments: list[str], *, limit_s: float = _LIMIT_S, is_slow: bool = False
) -> str:
    """Runs the quick or the slow tests in ``copy`` until one fails, and gives its name; empty if none does."""
    which = ("-m", "slow", "--timeout", str(_SLOW_LIMIT_S)) if is_slow else ("-m", "not slow")
    command = [sys.executable, "-m", "pytest", *_OPTIONS, *which, *arguments]
    environment = os.environ | {
        "PYTHONPATH": f"{copy}:{copy / 'dags'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        # The copies do not share Java: its Python workers import from where it was started.
        "TMPDIR": str(copy.with_name(f"t{copy.name}")),
        "TESTS_KEEP_JAVA": "0s" if room.runs_in_workers else _KEEP_JAVA,
    }
    Path(environment["TMPDIR"]).mkdir(exist_ok=True)
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SLOW_LIMIT_S if is_slow else limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "" if is_slow else "none in time"
    if done.returncode in (0, _NO_TESTS):
        return ""
    if failed := _FAILED.search(done.stdout):
        return failed[1]
    raise SystemExit(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="how many faults are tried at a time")
    parser.add_argument("--room", choices=[room.name for room in ROOMS], help="only this room")
    parser.add_argument("--list", action="store_true", help="print the faults and the answers so far, try none")
    arguments = parser.parse_args()
    drawn = _drawn()
    answers: dict[str, str] = json.loads(_ANSWERS.read_text()) if _ANSWERS.exists() else {}
    explained = tomllib.loads(_EXPLAINED.read_text()) if _EXPLAINED.exists() else {}
    if not arguments.list:
        wanted = [(room, one) for room, one in drawn if arguments.room in (None, room.name)]
        _try_all([(room, one) for room, one in wanted if one.key not in answers], answers, arguments.jobs)
        _try_all(
            [(room, one) for room, one in wanted if answers.get(one.key) == _QUICKLY],
            answers,
            arguments.jobs,
            slowly=True,
        )
    sys.exit(0 if _report(drawn, answers, explained) else 1)


def _drawn() -> list[tuple[Room, Mutation]]:
    candidates: dict[str, list[Mutation]] = {}
    room_of: dict[str, Room] = {}
    for room in ROOMS:
        for path in room.sources(_ROOT):
            of_file = mutations_in(path, (_ROOT / path).read_text())
            candidates |= of_file
            room_of |= dict.fromkeys(of_file, room)
    return [(room_of[fault.statement], fault) for fault in draw(candidates, _COUNT, _SEED)]


def _try_all(todo: list[tuple[Room, Mutation]], answers: dict[str, str], jobs: int, *, slowly: bool = False) -> None:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        places = _Workplaces(Path(folder), jobs)
        rooms = [] if slowly else list(dict.fromkeys(room for room, _ in todo))
        for room, _ in zip(rooms, pool.map(places.cover, rooms), strict=True):
            print(f"{room.name}: its tests pass on the code as it is", flush=True)
        runs = {pool.submit(places.answer, room, fault, slowly=slowly): fault for room, fault in todo}
        for number, run in enumerate(as_completed(runs), 1):
            fault = runs[run]
            answers[fault.key] = run.result()
            _ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
            print(f"{number}/{len(runs)} {fault}  {answers[fault.key]}", flush=True)


def _report(drawn: list[tuple[Room, Mutation]], answers: dict[str, str], explained: dict[str, str]) -> bool:
    known = [(room, fault) for room, fault in drawn if fault.key in answers]
    survivors = [(room, fault) for room, fault in known if answers[fault.key] in (_SURVIVED, _QUICKLY)]
    for room, fault in survivors:
        print(f"survived: {fault.key} [{room.name}] {fault}  {explained.get(fault.key, '')}")
    unexplained = [fault for _, fault in survivors if fault.key not in explained]
    noticed = len(known) - len(survivors)
    print(f"{len(drawn)} faults, {len(known)} tried, {noticed} noticed, {len(unexplained)} unexplained")
    return len(known) == len(drawn) and len(unexplained) <= (1 - _WANTED) * len(drawn)


if __name__ == "__main__":
    main()
