"""``docs/contract.md``: what a contract is, and what each kind of change means."""

from itertools import groupby

from infra.docs.markdown import page, table
from spark_jobs.contract.changes import KINDS, ChangeKind

_HEAD = """\
A contract is what adloom promises to those who send records and to those who read tables: the named sources with
their mappings, the fields of an event with their rules, the tables with their columns, and the expectations that
validation checks. It is not a file to be written: the [settings](settings.md) and the code make it, and it has a
version.

```toml
[contract]
version = "1.0"      # major.minor
name = "ad-events"
owner = "ads-data"
```

```sh
adloom contract show --config adloom.toml                                       # what is promised
adloom contract check old.toml new.toml                                         # what a change of the settings breaks
adloom contract check --lake lake --config new.toml                             # against the one in use in the lake
adloom contract export --format odcs --config adloom.toml --out contract.yaml   # for catalogs and other tools
```

## Changing it

`adloom contract check` judges each difference. *Safe*: producers and consumers go on as they do. *Breaking*: somebody
must act first; if the settings do not show the effect of a difference, it counts as breaking too. A breaking change
needs a new major version (`2.0`), a safe one a new minor (`1.1`). A breaking change without a new major is an error,
a safe one without a new version a warning. Exit codes: 0 if all changes are safe, 1 if one is breaking, 2 if the two
could not be compared. Two safe changes, one after the other, are safe together.

The check knows the text of an expression, not its meaning: `$.a = 1` and `1 = $.a` differ, white space does not
count.

For example, `event_id = "$.id"` becomes `event_id = "$.uuid"`, and the source keeps a new column `site`:

| what | was | is | verdict | for |
|---|---|---|---|---|
| `source.web.event_id` | `$.id` | `$.uuid` | breaking | consumers |
| `source.web.keep.site` | | `$.site as string` | safe | both |
| `silver.site` (also bronze, attributions) | | `STRING` | safe | consumers |

version 1.0 → 1.1: error, a change is breaking: set contract.version to 2.0 or later

## In a lake

When the job `deduplicate` or a bounded run starts, it writes the contract to `_contracts/<version>.json` and the
version to `_contracts/in_use.json`. What is written under a version changes in safe ways only.

- **A start** with a contract that breaks the one of the same version, or that differs from it in safe ways, logs a
  warning and goes on: a driver that restarts at night must not stay down for a number in a file. The broken promise
  stays written, so the warning comes again.
- **`deploy_streams`** compares before it stops anything and shows every difference in the run's log. It refuses a
  breaking one unless *confirm breaking contract* is set in the form, and one under the old major version in any case.

## Other tools

`adloom contract export --format odcs` writes one YAML document of the [Open Data Contract Standard](https://bitol.io)
v3.1. It holds every source and every table as a schema object, because they share one version. The expression of a
field is its `transformLogic`. Rules are quality checks: `library` for missing and invalid values, `sql` where the
columns of the table suffice, and `custom` (engine `adloom`) for verdicts on records and for what only `adloom
validate` can compute. Fields and columns that hold personal data have the classification `personal`. `--format json`
writes all that `adloom contract check` compares."""


def contract_page() -> str:
    """The page: one table of changes per part of the contract."""
    return page("Contract", _HEAD, "## Every kind of change", *(_group(name, list(of)) for name, of in _groups()))


def _groups() -> "groupby[str, ChangeKind]":
    return groupby(KINDS, key=lambda kind: kind.group)


def _group(name: str, kinds: list[ChangeKind]) -> str:
    rows = [(kind.what, _verdict(kind), kind.whom.value, kind.why) for kind in kinds]
    return f"### {name}\n\n" + table(("change", "verdict", "for", "why"), rows)


def _verdict(kind: ChangeKind) -> str:
    return kind.verdict.value if kind.verdict.value == "safe" else f"**{kind.verdict.value}**"
