"""The type of the ``VIEW`` that a module of this folder declares."""

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """A view for people: a question of theirs, answered by SQL over tables of the lake and other views.

    ``columns`` has each column with its meaning, in order; ``sql`` is in DuckDB's dialect, or None if it depends on
    what the lake has. What counts by day calls the macro of :func:`spark_jobs.sql.zones.day_of`.
    """

    name: str
    meaning: str
    columns: tuple[tuple[str, str], ...]
    sql: str | None
