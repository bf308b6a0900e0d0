"""The walks of docs/first-ten-minutes.md, which the tests perform as they stand."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "first-ten-minutes.md"
_LONGEST_S = 180


def steps(who: str) -> list[str]:
    """The commands under the heading ``who``, a text for each block; settings of a place are left to the test."""
    section = _PAGE.read_text(encoding="utf-8").partition(f"## {who}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    without_places = [re.sub(r"^export .*\n", "", block, flags=re.MULTILINE) for block in blocks]
    return [block for block in without_places if block]


def perform(step: str, environment: Mapping[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Runs the commands of ``step`` in ``folder``, up to the first that fails."""
    if not (folder / ".venv").exists():
        (folder / ".venv").symlink_to(_ROOT / ".venv")
    return subprocess.run(
        ["bash", "-euc", step],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
    )
