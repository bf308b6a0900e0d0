"""The sets of rules of a lake, as canonical JSON below ``_rules``, named by digest; and which one is in use."""

import getpass

from spark_jobs.contract.tables import MARKS
from spark_jobs.errors import LakeError
from spark_jobs.lake.batches import note_in_table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import find_record, read_record, write_record
from spark_jobs.places import MARKS_WRITER
from spark_jobs.traffic_rules.reached import RULES_IN_USE, Reached, RulesInUse, rules_key
from spark_jobs.traffic_rules.rules import RuleSet

_REMEDY = "apply the rules again with `adloom marks apply --rules FILE`"


def last_marking(lake: Lake) -> tuple[int, Reached] | None:
    """The number of the last commit of ``silver/marks``, and its progress; None: no commit."""
    last = note_in_table(lake, MARKS, MARKS_WRITER)
    return (last.batch, Reached.model_validate(last.reached[0])) if last else None


def rules_in_use(lake: Lake) -> RuleSet | None:
    """The set of rules in use; None: none was used yet.

    Raises:
        LakeError: it is missing or damaged.
    """
    named = find_record(lake, RULES_IN_USE, RulesInUse)
    return read_rules(lake, named.digest) if named else None


def read_rules(lake: Lake, digest: str) -> RuleSet:
    """The set of rules with ``digest``.

    Raises:
        LakeError: it is missing or damaged.
    """
    found = read_record(lake, rules_key(digest), RuleSet, remedy=_REMEDY)
    if found is None:
        raise LakeError(f"{lake.shown(rules_key(digest))} is missing; {_REMEDY}")
    return found


def keep_rules(lake: Lake, rules: RuleSet) -> None:
    """Writes the set of rules, so that commits can name it."""
    lake.files.write(rules_key(rules.digest), rules.canonical.encode() + b"\n")


def name_rules_in_use(lake: Lake, in_use: RulesInUse) -> None:
    """Records which set is in use, unless the lake has that record already."""
    if find_record(lake, RULES_IN_USE, RulesInUse) != in_use:
        write_record(lake, RULES_IN_USE, in_use)


def current_user() -> str:
    """The user that runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"  # in containers, a number may have no name
