"""Whether the log of each table can be read, and whether it has too many small files."""

from collections import Counter
from collections.abc import Iterator

from spark_jobs.lake.table_files import live_files
from spark_jobs.operations.doctor.description import Check, Finding, Subject, fine, warning
from spark_jobs.queries.registry import SHOWN_TABLES

_MANY = 500
"""The number of files of a partition from which on opening them noticeably slows reading."""


def _look(subject: Subject) -> Iterator[Finding]:
    found = 0
    for table in SHOWN_TABLES.values():
        newest = subject.lake.newest_commit(table.path)
        if newest is None:
            continue
        found += 1
        files = live_files(subject.lake, table, newest)
        of_partition = Counter(tuple(sorted(file.partition.items())) for file in files)
        most = max(of_partition.values(), default=0)
        if most > _MANY:
            where = f", {most:,} of them in one partition" if len(of_partition) > 1 else ""
            yield warning(
                f"{table.name}: {len(files):,} files{where}", "run `adloom maintain`, or see that maintain_tables runs"
            )
        else:
            yield fine(f"{table.name}: version {newest:,}, {len(files):,} files")
    if not found:
        yield fine("there are no tables yet")


CHECK = Check(5, "tables", _look)
