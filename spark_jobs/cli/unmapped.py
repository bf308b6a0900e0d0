"""Parts of records that no mapping reads: fields, and lists with several elements."""

from collections.abc import Iterable, Sequence

from spark_jobs.config.settings import Settings
from spark_jobs.mapping.paths import BETWEEN_ROOT, OUTER_ROOT, OUTERMOST_ROOT, Path, Step, Where, parse_path
from spark_jobs.mapping.sources import SourceMapping, compile_sources
from spark_jobs.mapping.suggest import NoRecordsError, list_of, lists_of_objects, profile_of
from spark_jobs.mapping.suggest.profile import Profile

_SHOWN = 10


def unmapped(texts: Sequence[bytes], settings: Settings) -> list[str]:
    """Sentences about what the mappings of ``settings`` leave out of records, which are JSON in ``texts``."""
    mappings = compile_sources(settings).values()
    if not mappings or len(mappings) < len(settings.sources):
        return []  # adloom's own format has what it has
    try:
        profile = profile_of(texts)
    except NoRecordsError:
        return []
    read = [steps for one in mappings for steps in _read(one)]
    elements = [steps for one in mappings for steps in _elements(one)]
    return [*_lists(profile, [*read, *elements]), *_fields(profile, read)]


def _read(mapping: SourceMapping) -> Iterable[tuple[Step, ...]]:
    """The steps of all paths, from the root of the whole record on; of a list, those of its first element."""
    *_, around, element = (), (), *_elements(mapping)
    begins = {"": element, OUTER_ROOT: (), OUTERMOST_ROOT: (), BETWEEN_ROOT: around}
    for path in (path for path in mapping.paths if path.root in begins):
        yield tuple(0 if isinstance(step, Where) else step for step in (*begins[path.root], *path.steps))


def _elements(mapping: SourceMapping) -> Iterable[tuple[Step, ...]]:
    """The steps to the first element of the list that has the records; of a list within a list, of both."""
    steps: tuple[Step, ...] = ()
    for level in mapping.each.levels if mapping.each else ():
        steps = (*steps, *level.steps, 0)
        yield steps


def _lists(profile: Profile, read: Sequence[tuple[Step, ...]]) -> Iterable[str]:
    for column in lists_of_objects(profile):
        steps = parse_path(column.expression).steps
        by_index = any(one[: len(steps) + 1] == (*steps, 0) for one in read)
        if (*steps, 0) not in read and (by_index or steps not in read):
            yield (
                f"{column.expression} has up to {max(column.sizes)} elements, {column.elements:,} in "
                f"{column.sizes.total():,} records, and no mapping reads each of them; if they are events, set each = "
                f'"{list_of(column)}"'
            )


def _fields(profile: Profile, read: Sequence[tuple[Step, ...]]) -> Iterable[str]:
    left = [column.expression for column in profile.scalars if not _is_read(parse_path(column.expression), read)]
    if left:
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        yield f"no mapping reads {', '.join(left[:_SHOWN])}{more}; keep carries a column on to gold"


def _is_read(path: Path, read: Sequence[tuple[Step, ...]]) -> bool:
    return any(path.steps[: len(steps)] == steps for steps in read)
