"""Whether the log of each table can be read, and whether it has too many small files."""

from collections import Counter
from collections.abc import Iterator

from spark_jobs.contract.tables import Table
from spark_jobs.lake.table_files import live_files
from spark_jobs.operations.doctor.description import Check, Finding, Subject, attempt, fine, warning
from spark_jobs.queries.registry import SHOWN_TABLES

_MANY = 500
"""The number of files of a partition from which on opening them noticeably slows reading."""


def _look(subject: Subject) -> Iterator[Finding]:
    newest = {table: subject.lake.newest_commit(table.path) for table in SHOWN_TABLES.values()}
    there = {table: version for table, version in newest.items() if version is not None}
    for table, version in there.items():
        yield from attempt(_files(subject, table, version))
    if not there:
        yield fine("there are no tables yet")


def _files(subject: Subject, table: Table, version: int) -> Iterator[Finding]:
    files = live_files(subject.lake, table, version)
    of_partition = Counter(tuple(sorted(file.partition.items())) for file in files)
    most = max(of_partition.values(), default=0)
    if most > _MANY:
        where = f", {most:,} of them in one partition" if len(of_partition) > 1 else ""
        yield warning(
            f"{table.name}: {len(files):,} files{where}", "run `adloom maintain`, or see that maintain_tables runs"
        )
    else:
        yield fine(f"{table.name}: version {version:,}, {len(files):,} files")


CHECK = Check(5, "tables", _look)
