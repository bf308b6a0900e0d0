"""Small files that others may read at any moment: they see all of one version, never half of it."""

import json
from pathlib import Path
from typing import Any


def write_text(file: Path, text: str) -> None:
    """Puts ``text`` into ``file`` at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(file.name + ".part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)


def write_json(file: Path, value: dict[str, Any]) -> None:
    """Puts ``value`` into ``file`` at once, as JSON."""
    write_text(file, json.dumps(value, indent=2) + "\n")
