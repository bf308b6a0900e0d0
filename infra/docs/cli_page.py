"""``docs/cli.md``: every command, from the help texts."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer.main

from infra.docs.markdown import code, page, table
from spark_jobs.cli import app

_HEAD = """\
Every command also explains itself with `--help`. Exit codes: 0 success, 1 an error (one line on stderr that starts with
`error:`), 2 wrong usage, 130 interrupted with Ctrl-C; commands that use others say so below.

All commands read the [settings](settings.md) from `--config` and the environment."""
_EXAMPLE = re.compile(r"Examples?:\s+")
_GAP = re.compile(r"\s{2,}\|?\s*")
"""The separator of an example from the next one, or from the text behind it."""


def cli_page() -> str:
    """The page: one section per command."""
    commands = list(leaf_commands())
    index = table(("command", "what it does"), [(_link(name), _paragraphs(command)[0]) for name, command in commands])
    return page("Command line", _HEAD, index, *(_section(name, command) for name, command in commands))


def leaf_commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its full name, with the typer object that describes it."""
    return _leaves("adloom", typer.main.get_command(app))


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    parts = getattr(command, "commands", None)
    if parts is None:
        yield name, command
        return
    for word, part in parts.items():
        yield from _leaves(f"{name} {word}", part)


def examples_of(command: Any) -> tuple[list[str], str]:
    """The examples in the epilog of ``command``, and the text behind them."""
    epilog, count = _EXAMPLE.subn("", command.epilog or "")
    parts = _GAP.split(epilog) if count else [epilog]
    return [part for part in parts if part.startswith("adloom ")], " ".join(
        part for part in parts if not part.startswith("adloom ")
    )


def _section(name: str, command: Any) -> str:
    examples, text = examples_of(command)
    arguments = [param for param in command.params if not _is_option(param)]
    options = [param for param in command.params if _is_option(param)]
    words = " ".join(map(_usage, arguments))
    usage = f"{name}{' ' + words if words else ''}{' [OPTIONS]' if options else ''}"
    rows = [(_name(param), _default(param), _meaning(param)) for param in (*arguments, *options)]
    parts = (
        f"## {name}",
        *_paragraphs(command),
        "```\n" + "\n".join((usage, *(f"# e.g. {example}" for example in examples))) + "\n```",
        table(("argument or option", "default", "meaning"), rows) if rows else "",
        text,
    )
    return "\n\n".join(part for part in parts if part)


def _link(name: str) -> str:
    return f"[{code(name)}](#{name.replace(' ', '-')})"


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in (command.help or "").split("\n\n")]


def _is_option(param: Any) -> bool:
    return bool(param.opts[0].startswith("-"))


def _usage(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return f"{name if argument.required else f'[{name}]'}{'...' if argument.nargs < 0 else ''}"


def _name(param: Any) -> str:
    if not _is_option(param):
        return code(param.metavar or param.name.upper())
    names = " / ".join(map(code, (*param.opts, *param.secondary_opts)))
    return names if getattr(param, "is_flag", False) or not param.metavar else f"{names} {param.metavar}"


def _default(param: Any) -> str:
    if param.required:
        return "required"
    value = param.default
    if getattr(param, "is_flag", False):
        return "on" if value else "off"
    if isinstance(value, Enum):
        value = value.value
    return "" if value is None else code(f"{value}")


def _meaning(param: Any) -> str:
    choices = param.type_descriptor.annotation
    named = (
        f" One of {', '.join(map(str, choices))}." if isinstance(choices, type) and issubclass(choices, Enum) else ""
    )
    variable = f" Variable: `{param.envvar}`." if param.envvar else ""
    return f"{param.help or ''}{named}{variable}"
