"""Schemas that sources name, found through the lake."""

from dataclasses import dataclass

from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.formats.schema_store import SchemaStore
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.files import Files


@dataclass(frozen=True)
class FilesOfLake:
    """Opens the small files of the lake at ``location`` in whichever process calls it; it can be pickled.

    Keys of an object store do not travel with it: the machines of a cluster have their own.
    """

    location: str
    s3: S3Settings | None = None

    def __call__(self) -> Files:
        """See :func:`open_lake`, whose files these are; a store that is away is asked for as long as Spark does."""
        return open_lake(self.location, self.s3, is_patient=True).files


def schemas_of(settings: Settings, lake: Lake) -> SchemaStore | None:
    """The writer schemas of the registry, which ``lake`` keeps; None: the settings have no registry."""
    files = FilesOfLake(lake.shown(), settings.s3)
    return SchemaStore(settings.registry, files) if settings.registry.url else None
