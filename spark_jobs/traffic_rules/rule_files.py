"""Rules of invalid traffic from TOML, with the lists that they refer to."""

import tomllib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spark_jobs.errors import RulesError
from spark_jobs.traffic_rules.rules import CRAWLER_LIST, KINDS, RULE, Rule, RuleSet

DEFAULT_RULES = Path(__file__).with_name("default_rules.toml")
"""The rules in use until others are applied."""
_TABLE = "rule"


def load_rules(file: Path = DEFAULT_RULES) -> RuleSet:
    """The rules in ``file``, with their patterns and networks; relative names start from its folder.

    Raises:
        RulesError: the file or a list cannot be read, or a rule is malformed.
    """
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RulesError(f"rules file {file} cannot be read: {error.strerror}; check --rules") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RulesError(f"rules file {file} is not TOML: {error}") from error
    if unknown := sorted({*tables} - {_TABLE}):
        raise RulesError(f"{file}: {unknown[0]} is not a rule; each rule is a table [[rule]]")
    raw = tables.get(_TABLE, [])
    if not isinstance(raw, list) or not all(isinstance(one, dict) for one in raw):
        raise RulesError(f"{file}: rule is not a list of tables; begin each rule with [[rule]]")
    rules = [_rule(file, place, one) for place, one in enumerate(raw, start=1)]
    names = [rule.id for rule in rules]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RulesError(f"{file}: rule {twice[0]!r}: id {twice[0]!r} is there twice; give each rule its own")
    return RuleSet.of(rules)


def _rule(file: Path, place: int, raw: Mapping[str, Any]) -> Rule:
    name = f"{file}: rule {raw['id']!r}" if "id" in raw else f"{file}: rule number {place}"
    try:
        return RULE.validate_python(_whole(name, file, raw))
    except ValidationError as error:
        lines = [f"{name}: {_told(one, raw)}" for one in error.errors()]
        raise RulesError("\n".join(["rules refused:", *lines])) from error


def _told(error: Any, raw: Mapping[str, Any]) -> str:
    """The fault of a rule: field, value, and what to do."""
    # The first part of the place is the kind, if it is known.
    place = [str(part) for part in error["loc"] if part != raw.get("kind")]
    reason = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{'.'.join(place)} is missing; add it (docs/invalid-traffic.md)"
    if error["type"] == "extra_forbidden":
        return f"{'.'.join(place)}: a rule of kind {raw.get('kind')} has no such field; remove it"
    if error["type"] == "union_tag_not_found":
        return f"kind is missing; choose one of {', '.join(KINDS)}"
    if error["type"] == "union_tag_invalid":
        return f"kind {raw.get('kind')!r} is unknown; choose one of {', '.join(KINDS)}"
    if not place:
        return str(reason)
    # For a long list, the reason names the member.
    value = error["input"]
    shown = "" if isinstance(value, list | tuple | dict) else f" {value!r}" if isinstance(value, str) else f" {value}"
    return f"{'.'.join(place)}{shown}: {reason}"


def _whole(name: str, file: Path, raw: Mapping[str, Any]) -> dict[str, Any]:
    """``raw`` with the entries of its lists."""
    whole = dict(raw)
    if raw.get("list") == CRAWLER_LIST and raw.get("kind") == "user_agent_list":
        whole["list_version"], listed = _crawlers(name)
        whole["patterns"] = [*raw.get("patterns", ()), *listed]
    elif "list_version" in raw:
        raise RulesError(f"{name}: list_version {raw['list_version']!r}: it follows from the list; remove it")
    if raw.get("kind") == "cidr" and "file" in raw:
        whole["networks"] = [*raw.get("networks", ()), *_lines(name, file.parent / str(whole.pop("file")))]
    return whole


def _lines(name: str, file: Path) -> list[str]:
    """The lines of ``file`` without comments and empty ones."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError(f"{name}: file {file} cannot be read: {error}; it holds one network a line") from error
    return [line for line in (one.partition("#")[0].strip() for one in text.splitlines()) if line]


def _crawlers(name: str) -> tuple[str, list[str]]:
    """The version of the installed list of crawlers, and its patterns."""
    try:
        from crawleruseragents import CRAWLER_USER_AGENTS_DATA  # noqa: PLC0415 it is optional
    except ModuleNotFoundError as error:
        raise RulesError(
            f"{name}: list {CRAWLER_LIST!r} is not installed; install adloom[jobs], or pip install {CRAWLER_LIST}"
        ) from error
    return version(CRAWLER_LIST), [str(crawler["pattern"]) for crawler in CRAWLER_USER_AGENTS_DATA]
