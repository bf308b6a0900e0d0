"""Whether the checkpoints can be used with the settings, by this version."""

from collections.abc import Iterator

from spark_jobs import __version__
from spark_jobs.contract.compatibility import Compatibility
from spark_jobs.operations.doctor.description import Check, Finding, Subject, fine, warning, wrong
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.streams.checkpoints import list_checkpoints, preflight, source_of


def _look(subject: Subject) -> Iterator[Finding]:
    every = list(list_checkpoints(subject.lake))
    current = {found.query: found for found in every if found.is_current}
    if not current:
        yield fine("no query has started yet")
        return
    ingest = current["ingest"].manifest if "ingest" in current else None
    source = source_of(ingest, subject.settings)
    changed = preflight(subject.lake, subject.settings, JOB_OF_QUERY, source=source)
    for change in changed:
        text = f"{change.query}: {change.setting} was {change.before} and is {change.now}: {change.why}"
        if change.verdict is Compatibility.BREAKING:
            yield wrong(text, f"set it back, or `adloom checkpoints reset {change.query}`")
        elif change.verdict is Compatibility.IGNORED:
            yield warning(text, f"`adloom checkpoints reset {change.query}`, if you want the new value")
    versions = {found.manifest.package_version for found in current.values() if found.manifest} - {__version__}
    if versions:
        yield fine(f"checkpoints of adloom {', '.join(sorted(versions))} are used by {__version__}")
    if all(change.verdict is Compatibility.SAFE for change in changed):
        yield fine(f"{len(current)} checkpoints fit the settings")
    superseded = len(every) - len(current)
    if superseded:
        yield fine(f"{superseded} older checkpoints are kept; `adloom checkpoints clean` removes them")


CHECK = Check(4, "checkpoints", _look)
