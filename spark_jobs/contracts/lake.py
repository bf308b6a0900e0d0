"""Where everything lies under a lake's root."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.tables import Table


@dataclass(frozen=True)
class Lake:
    """A lake's root as a URI without a trailing slash, and the places under it."""

    root: str

    @classmethod
    def at(cls, location: str) -> "Lake":
        """The lake at ``location``: a ``file:///`` URI or a plain path, which may be relative.

        Raises:
            SettingsError: ``location`` is empty or has a scheme that is not served.
        """
        scheme = urlsplit(location).scheme
        if not location.strip():
            raise SettingsError("the lake's location is empty; give a folder, as in --lake ./lake")
        if scheme not in ("", "file"):
            raise SettingsError(f"lake {location!r}: scheme {scheme!r} is not served; give a folder or a file:/// URI")
        path = unquote(urlsplit(location).path) if scheme == "file" else location
        return cls(Path(path).expanduser().resolve().as_uri().rstrip("/"))

    @property
    def path(self) -> Path:
        """The root as a local path."""
        return Path(unquote(urlsplit(self.root).path))

    def table(self, table: Table) -> str:
        """URI of ``table``."""
        return f"{self.root}/{table.path}"

    def checkpoint(self, job: str, query: str, version: int = 1) -> str:
        """URI of the checkpoint of ``query`` of ``job``."""
        return self.checkpoint_folder(job, query, version).as_uri()

    def checkpoint_folder(self, job: str, query: str, version: int = 1) -> Path:
        """:meth:`checkpoint` as a local path. Its manifest lies beside it, as ``v<N>.json``."""
        return self.path / "_checkpoints" / job / query / f"v{version}"

    @property
    def ledger_file(self) -> Path:
        """The accounts of the latest run, as JSON."""
        return self.progress / "ledger.json"

    def lock_file(self, job: str) -> Path:
        """Held locked by the process that runs ``job`` on this lake."""
        return self.progress / job / "driver.lock"

    @property
    def progress(self) -> Path:
        """Folder with one folder for each job, and in it one file of progress for each query."""
        return self.path / "_progress"

    @property
    def reports(self) -> Path:
        """Folder of the validation reports; ``index.html`` is the page to open."""
        return self.path / "_reports"

    def failing_rows(self, table: Table) -> Path:
        """Delta table of the rows of ``table`` that failed validation, with their reasons."""
        return self.reports / "failing_rows" / table.name

    def has(self, table: Table) -> bool:
        """Whether ``table`` has been begun: a writer that was killed in its first commit leaves a log without one."""
        return any((self.path / table.path / "_delta_log").glob("*.json"))
