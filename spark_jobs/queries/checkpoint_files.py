"""The small text files of a checkpoint, which Spark writes line by line."""

from collections.abc import Iterable

from spark_jobs.lake.layout import Lake


def read_lines(lake: Lake, key: str) -> list[str]:
    """The lines of the file ``key``, the first of which is its version; none: there is no such file."""
    return (lake.files.read(key) or b"").decode().splitlines()


def write_lines(lake: Lake, key: str, lines: Iterable[str]) -> None:
    """Replaces the file ``key``. The query that the checkpoint belongs to must not be running."""
    folder, _, name = key.rpartition("/")
    # Hadoop's checksum of the old content; it exists on local disks only, and not always.
    lake.files.delete([f"{folder}/.{name}.crc"])
    lake.files.write(key, "\n".join(lines).encode())
