"""Files that each update adds to, merged from time to time, so that their number stays small.

Parts of silver are merged eight by eight, in two steps: then one part has the events of 64 updates, and goes as a whole
once none of them is needed. Other files are merged into one when there are 64.
"""

from collections.abc import Sequence

from spark_jobs.ledger.model import Part
from spark_jobs.ledger.records import KEPT_SCHEMA
from spark_jobs.ledger.workbench import LedgerDatabase

_PARTS_MERGED, _LEVELS, _FILES_MERGED = 8, 2, 64


def merged_parts(desk: LedgerDatabase, parts: Sequence[Part], watermark_us: int) -> tuple[Part, ...]:
    """``parts``, of which eight are merged if there are eight in a row that the watermark has passed."""
    for level in range(_LEVELS):
        first = next((at for at, part in enumerate(parts) if part.level == level), 0)
        row = parts[first : first + _PARTS_MERGED]
        # Later events may be open in a query, which then would load all that they are merged with.
        if len(row) == _PARTS_MERGED and all(one.level == level and one.newest_us <= watermark_us for one in row):
            return (*parts[:first], _merged(desk, row, level + 1), *parts[first + _PARTS_MERGED :])
    return tuple(parts)


def merged_files(desk: LedgerDatabase, name: str, keys: Sequence[str], schema: str, query: str) -> tuple[str, ...]:
    """``keys``; if there are 64, the one file with what ``query`` makes of their rows, in the table ``merging``."""
    if len(keys) < _FILES_MERGED:
        return tuple(keys)
    return (_rows_of(desk, name, keys, schema, query),)


def _merged(desk: LedgerDatabase, parts: Sequence[Part], level: int) -> Part:
    return Part(
        key=_rows_of(desk, f"kept-{level}", [part.key for part in parts], KEPT_SCHEMA, "FROM merging ORDER BY version"),
        first=parts[0].first,
        last=parts[-1].last,
        newest_us=max(part.newest_us for part in parts),
        until_us=None if any(part.until_us is None for part in parts) else max(part.until_us or 0 for part in parts),
        level=level,
    )


def _rows_of(desk: LedgerDatabase, name: str, keys: Sequence[str], schema: str, query: str) -> str:
    desk.run(f"CREATE OR REPLACE TABLE merging ({schema})")
    for key in keys:
        desk.fill("merging", key)
    stored = desk.store(name, query)
    desk.run("DROP TABLE merging")
    return stored
