"""Names of datasets, as OpenLineage wants them: <https://openlineage.io/docs/spec/naming>."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from spark_jobs.config.folders import Folder
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.store.files import LOCAL


@dataclass(frozen=True)
class Name:
    """A dataset's namespace, and its name there."""

    namespace: str
    name: str


def name_of_table(lake: Lake, table: Table) -> Name:
    """The name of ``table``: a bucket and a key, or a path."""
    if lake.is_local:
        return Name("file", f"{lake.root.removeprefix(LOCAL)}/{table.path}")
    parts = urlsplit(lake.root)
    return Name(f"s3://{parts.netloc}", f"{parts.path.strip('/')}/{table.path}".lstrip("/"))


def names_of_sources(settings: Settings) -> list[Name]:
    """The names of what arrives from outside: topics, and folders that the settings name."""
    # The first broker names the cluster.
    broker = settings.kafka.bootstrap_servers.partition(",")[0].strip()
    topics = [Name(f"kafka://{broker}", topic) for topic in settings.topics] if broker else []
    return topics + [_name_of(folder) for folder in settings.folders]


def _name_of(folder: Folder) -> Name:
    if folder.is_local:
        return Name("file", folder.location)
    parts = urlsplit(folder.location)
    return Name(f"s3://{parts.netloc}", parts.path.strip("/"))
