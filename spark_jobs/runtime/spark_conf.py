"""Spark's configuration: what differs from Spark's defaults, and why."""

import sys
import tempfile
from pathlib import Path

from spark_jobs.contracts.choices import JoinState, StateStore
from spark_jobs.contracts.durations import milliseconds
from spark_jobs.contracts.errors import EnvironmentMissingError
from spark_jobs.contracts.sections import SparkSettings, TablesSettings
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.spark_names import IN_MEMORY, ROCKSDB
from spark_jobs.queries.partitions import partitions
from spark_jobs.runtime.java import EXECUTOR_OPTIONS, Lifetime, driver_options
from spark_jobs.runtime.s3a import s3a_conf, trust_options

JARS = Path(sys.prefix) / "share" / "adloom" / "jars"
"""Where `make setup` puts the jars that Spark needs beside its own."""

# Hadoop's own local file system starts a process (chmod) for each file it makes, and a batch makes dozens.
_LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
_JOIN_FORMATS = {JoinState.BY_KEY: "2", JoinState.BY_TIME: "4"}
"""Spark's numbers of the formats of a join's state."""
_NEARLY_UNIQUE = (
    *("raw", "event_id", "event_time", "impression_id", "impression_time", "click_id", "click_time"),
    *("session_id", "session_start", "session_end", "events.list.element.event_id", "events.list.element.event_time"),
)
"""Columns of Parquet in which few values stand twice: a dictionary of them is made in vain."""
_PROPERTY_OF_NEW_TABLES = "spark.databricks.delta.properties.defaults."


def spark_conf(
    settings: Settings,
    *,
    is_local: bool = True,
    log_file: Path | None = None,
    scratch: Path | None = None,
    lifetime: Lifetime = Lifetime.RUN,
) -> dict[str, str]:
    """Spark's configuration for ``settings``: what differs from Spark's defaults, and why.

    Args:
        settings: see ``[spark]``, and ``[s3]`` for a lake that is not local.
        is_local: whether the lake is.
        log_file: where Spark's own log goes; None: only its errors are kept, on stderr.
        scratch: this process's own folder for temporary files. Without it Java uses the machine's, and trusts the
            machine's authorities and not s3.ca_file, as on a cluster.
        lifetime: how long the session will work.

    Raises:
        EnvironmentMissingError: the jars are missing.
        SettingsError: s3.ca_file is no certificate.
    """
    if not any(JARS.glob("delta-spark_*.jar")):
        raise EnvironmentMissingError(f"no Delta jar in {JARS}: Spark cannot write tables; run `make setup`")
    java_options = driver_options(lifetime, log_file=log_file, temporary=scratch)
    if scratch and not is_local:
        java_options.extend(trust_options(settings.s3, scratch))
    properties = table_properties(settings.tables)
    return {
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.driver.extraClassPath": f"{JARS}/*",
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
        "spark.sql.shuffle.partitions": str(partitions(settings.spark)),
        # Adaptive execution does not touch stateful stages, and costs time to plan the rest.
        "spark.sql.adaptive.enabled": "false",
        # Four queries and Delta's own make more classes a batch than the default 100, which then are compiled anew.
        "spark.sql.codegen.cache.maxEntries": "4000",
        # An entry of Delta's log has more fields than the default of 100 lets compile as a whole; then each task that
        # reads the log makes code for each of its steps, in every batch.
        "spark.sql.codegen.maxFields": "1000",
        # A Delta snapshot of a few hundred files in the default 50 partitions costs seconds a batch.
        "spark.databricks.delta.snapshotPartitions": "2",
        # VACUUM lists a table in so many tasks, one after the other on a small machine; the default is 10,000.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
        # Else the text of an error in a batch tells what failed and not why: the cause is in Java's part of it.
        "spark.sql.pyspark.jvmStacktrace.enabled": "true",
        # Else each commit ends with a Spark job of its own, which sums up what the log already says.
        "spark.databricks.delta.writeChecksumFile.enabled": "false",
        # Equal keys are judged by adloom; a variant with some is no reason to fail.
        "spark.sql.variant.allowDuplicateKeys": "true",
        # Spark's default is INT96, which takes half as much again to write, and bounds of it cannot be kept.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        **{f"spark.hadoop.parquet.enable.dictionary#{column}": "false" for column in _NEARLY_UNIQUE},
        "spark.databricks.delta.optimize.maxFileSize": str(settings.tables.target_file_bytes),
        "spark.databricks.delta.autoCompact.maxFileSize": str(settings.tables.target_file_bytes),
        **{_PROPERTY_OF_NEW_TABLES + name.removeprefix("delta."): value for name, value in properties.items()},
        **({} if is_one_process(settings) else _cluster_conf(settings.spark)),
        **(_LOCAL_FILES if is_local else s3a_conf(settings.s3)),
        **streaming_conf(settings),
    }


def is_one_process(settings: Settings) -> bool:
    """Whether Spark runs within the driver's process."""
    return settings.spark.master.startswith("local[") or settings.spark.master == "local"


def _cluster_conf(settings: SparkSettings) -> dict[str, str]:
    """What executors of their own need: the jars, sent to them, and the package, for what runs in Python there.

    Keys of an object store, and an authority of ``s3.ca_file``, are not sent: the machines of a cluster have their own.
    """
    jars = ",".join(jar.as_uri() for jar in sorted(JARS.glob("*.jar")))
    return {
        "spark.jars": jars,
        "spark.cores.max": str(settings.max_cores),
        "spark.executor.memory": settings.executor_memory,
        "spark.executor.extraJavaOptions": " ".join(EXECUTOR_OPTIONS),
    }


def table_properties(settings: TablesSettings) -> dict[str, str]:
    """The properties of a Delta table that say how it is cared for, by their own names."""
    return {
        "delta.autoOptimize.autoCompact": str(settings.auto_compact).lower(),
        "delta.logRetentionDuration": f"interval {milliseconds(settings.log_retention)} milliseconds",
        "delta.deletedFileRetentionDuration": f"interval {milliseconds(settings.file_retention)} milliseconds",
        # A checkpoint of the log lists all files of the table anew: often is dear for a table with many.
        "delta.checkpointInterval": "50",
    }


def streaming_conf(settings: Settings) -> dict[str, str]:
    """The part of :func:`spark_conf` that streaming queries read when they start."""
    conf = {
        # A batch without data would move the late line between two batches of the same rows, depending on which came
        # first: late rows are to be the same ones in every run. See docs/architecture.md, "Time".
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.stateStore.providerClass": IN_MEMORY,
        "spark.sql.streaming.join.stateFormatVersion": _JOIN_FORMATS[settings.spark.join_state],
        # Whatever is asked for now, a checkpoint goes on in its own format, and so must be allowed to.
        "spark.sql.streaming.join.stateFormatV4.enabled": "true",
    }
    if settings.spark.state_store is StateStore.ROCKSDB:
        conf |= {
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        }
    return conf
