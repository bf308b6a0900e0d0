"""Which tests run which line, as pytest-cov has measured it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from coverage import CoverageData

_SET_UP = "setup"
_LONGEST = 10


@dataclass(frozen=True)
class Covered:
    """By module and line, the tests that run it."""

    lines: dict[str, dict[int, list[str]]]

    @classmethod
    def read(cls, file: Path) -> Self:
        """What ``file`` says, whose paths are relative to the checkout (``relative_files`` in pyproject.toml)."""
        data = CoverageData(str(file))
        data.read()
        return cls({path: data.contexts_by_lineno(path) for path in data.measured_files()})

    def tests_of(self, path: str, line: int, files: tuple[str, ...]) -> list[str]:
        """The tests that run the line, in the order of their ``files``; whole files where a fixture runs it."""
        found: dict[str, dict[str, None]] = {file: {} for file in files}
        lines = self.lines.get(path, {})
        # Of a statement over several lines, Python may run only some.
        ran = next((one for one in range(line, line - _LONGEST, -1) if one in lines), line)
        for context in lines.get(ran, []):
            if not context:  # an import
                continue
            test, _, phase = context.rpartition("|")
            file = test.partition("::")[0]
            # What a fixture has made may be judged by every test of the file.
            found.setdefault(file, {})[file if phase == _SET_UP else test] = None
        return [one for file, tests in found.items() for one in ([file] if file in tests else tests)]
