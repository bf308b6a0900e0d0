"""Changes of the tables."""

from collections.abc import Sequence

from spark_jobs.contract.changes import output_kinds as kinds
from spark_jobs.contract.changes.change import Change, Changes
from spark_jobs.contract.changes.expectations import expectation_changes
from spark_jobs.contract.contract import TableTerms

_WATERMARK = "watermark"


def table_changes(old: Sequence[TableTerms], new: Sequence[TableTerms]) -> Changes:
    """The differences in the tables. The order of columns means nothing: Delta's readers use names."""
    before, now = {one.name: one for one in old}, {one.name: one for one in new}
    for name in dict.fromkeys([*before, *now]):
        if name not in now:
            yield Change(kinds.TABLE_REMOVED, name, before[name].path, "")
        elif name not in before:
            yield Change(kinds.TABLE_ADDED, name, "", now[name].path)
        else:
            yield from _table(before[name], now[name])


def _table(old: TableTerms, new: TableTerms) -> Changes:
    if old.path != new.path:
        yield Change(kinds.TABLE_MOVED, old.name, old.path, new.path)
    if old.partition_by != new.partition_by:
        yield Change(kinds.PARTITIONS, old.name, ", ".join(old.partition_by), ", ".join(new.partition_by))
    yield from _columns(old, new)
    yield from _settings(old, new)
    yield from expectation_changes(old.name, old.expectations, new.expectations)


def _columns(old: TableTerms, new: TableTerms) -> Changes:
    before, now = ({column.name: column.type for column in table.columns} for table in (old, new))
    for name in dict.fromkeys([*before, *now]):
        was, is_now = before.get(name, ""), now.get(name, "")
        if not was or not is_now:
            kind = kinds.COLUMN_REMOVED if was else kinds.COLUMN_ADDED
            yield Change(kind, f"{old.name}.{name}", was, is_now)
        elif was.upper() != is_now.upper():
            yield Change(kinds.COLUMN_TYPE, f"{old.name}.{name}", was, is_now)


def _settings(old: TableTerms, new: TableTerms) -> Changes:
    for name in dict.fromkeys([*old.settings, *new.settings]):
        was, is_now = old.settings.get(name), new.settings.get(name)
        if was == is_now:
            continue
        judged = kinds.MEANING_ADDED if was is None else kinds.MEANING
        kind = kinds.LATENESS if name.endswith(_WATERMARK) else judged
        yield Change(kind, f"{old.name}: {name}", was or "", is_now or "")
