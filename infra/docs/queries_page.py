"""``docs/queries.md``: every streaming query, from its declaration."""

from collections.abc import Iterator

from infra.docs.markdown import code, page, table
from spark_jobs.errors import AdloomError
from spark_jobs.queries.jobs import JOBS, Job
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import queries_of
from spark_jobs.queries.state_settings import StateSetting

_HEAD = """\
The streaming queries, by job. Each is a folder of `spark_jobs/queries/`. How they work together is
described in [How it works](architecture.md).

Under *settings of the state*, each query lists the settings that its checkpoint depends on, and the verdict of
`adloom preflight` when one of them changes. A *breaking* change needs `adloom checkpoints reset`; after an
*ignored* one, the checkpoint keeps its old value until it is reset."""
_OTHERS = "the others"
_KINDS = (
    ("entries added", "entries left out", "one", f"one,{_OTHERS}"),
    ("larger", "smaller", "1", "2"),
    ("longer", "shorter", "1h", "2h"),
)
"""How a value can change in either direction, each with two values to try: of a list, a number, a duration."""


def queries_page() -> str:
    """The page: one section per job, one part per query."""
    return page("Queries", _HEAD, *(part for job in JOBS for part in _job(job)))


def _job(job: Job) -> Iterator[str]:
    optional = " The job is optional." if job.is_optional else ""
    yield f"## Job {job.name}\n\n{job.summary}{optional}"
    yield from map(_query, queries_of(job.name))


def _query(query: Query) -> str:
    times = len(query.reads)
    read = f"{code(query.reads[0].path)}{f', {times} times' if times > 1 else ''}" if times else "the source"
    facts = (
        ("reads", read),
        ("writes", f"{code(query.writes.path)}"),
        ("output mode", query.output_mode),
        ("stateful operator", query.operator),
        ("final rows", query.final),
        ("late rows", query.late),
    )
    changes = table(
        ("settings of the state", "change", "verdict", "why"), [row for one in query.state for row in _changes(one)]
    )
    parts = (f"### {query.name}", query.summary, table(("", ""), facts), changes, *_initial_state(query))
    return "\n\n".join(parts)


def _initial_state(query: Query) -> Iterator[str]:
    if query.initial_state:
        one = query.initial_state
        yield f"[Initial state](architecture.md#initial-state), {code(one.setting)}: {one.meaning}"
        yield f"Its columns: {code(one.columns)}."


def _changes(one: StateSetting) -> Iterator[tuple[str, str, str, str]]:
    for up, down, small, large in _KINDS:
        try:
            found = {up: one.judge(small, large), down: one.judge(large, small)}
        except (AdloomError, ValueError):
            continue  # it is not a value of that kind
        if found[up] == found[down]:
            found = {"any": found[up]}
        for change, (verdict, why) in found.items():
            yield code(one.name), change, verdict.value, why
        return
    raise ValueError(f"{one.name}: add the kind of its values to _KINDS")
