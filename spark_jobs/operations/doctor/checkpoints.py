"""Whether the checkpoints can be used with the settings, by this version."""

from collections.abc import Iterator

from spark_jobs import __version__
from spark_jobs.contract.compatibility import Compatibility
from spark_jobs.ingest.files_read import count_files
from spark_jobs.operations.doctor.description import Check, Finding, Subject, fine, warning, wrong
from spark_jobs.queries.manifest import FILES
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.streams.checkpoints import Checkpoint, list_checkpoints, preflight, source_of

_MANY_FILES = 100_000
"""From about here on these batches take seconds longer."""


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
    if "ingest" in current and source == FILES:
        yield from _files(subject, current["ingest"])
    superseded = len(every) - len(current)
    if superseded:
        yield fine(f"{superseded} older checkpoints are kept; `adloom checkpoints clean` removes them")


def _files(subject: Subject, ingest: Checkpoint) -> Iterator[Finding]:
    count = count_files(subject.lake, checkpoint_key(ingest.query, ingest.version))
    text = f"{ingest.query} remembers {count:,} files that it has read"
    if count > _MANY_FILES:
        yield warning(
            f"{text}, and writes their names again every tenth batch",
            f"move files that were read out of the folder, then restart job {ingest.job}, which forgets them",
        )
    else:
        yield fine(text)


CHECK = Check(4, "checkpoints", _look)
