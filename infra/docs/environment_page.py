"""``docs/environment.md``: every environment variable."""

from infra.docs.markdown import code, page, table
from infra.docs.variables import GROUPS, Group

_HEAD = (
    "Environment variables, by the program that reads them. Secrets belong here or in an AWS profile, never in a file."
)


def environment_page() -> str:
    """The page: one section per program."""
    return page("Environment variables", _HEAD, *map(_section, GROUPS))


def _section(group: Group) -> str:
    rows = [(code(variable.name), variable.default, variable.meaning) for variable in group.variables]
    return "\n\n".join(
        filter(None, (f"## {group.title}", group.remark, table(("variable", "default", "meaning"), rows)))
    )
