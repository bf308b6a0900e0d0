"""Spark's configuration: what differs from Spark's defaults, and why."""

import shlex
import tempfile
from pathlib import Path

from spark_jobs.config.choices import JoinState, StateStore
from spark_jobs.config.durations import milliseconds
from spark_jobs.config.sections import SparkSettings, TablesSettings
from spark_jobs.config.settings import Settings
from spark_jobs.errors import EnvironmentMissingError
from spark_jobs.spark.jars.ready import jars_folder, mending
from spark_jobs.spark.java import EXECUTOR_OPTIONS, Lifetime, driver_options
from spark_jobs.spark.names import IN_MEMORY, ROCKSDB
from spark_jobs.spark.partitions import partitions
from spark_jobs.spark.s3a import CHECKPOINTS, s3a_conf, trust_options

# Hadoop's own local file system starts a process (chmod) for each file it creates, and a batch creates dozens.
_LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
_JOIN_FORMATS = {JoinState.BY_KEY: "2", JoinState.BY_TIME: "4"}
"""Spark's numbers of the formats of a join's state."""
_DELTA = "io.delta.sql.DeltaSparkSessionExtension"
_NEARLY_UNIQUE = (
    *("raw", "event_id", "event_time", "impression_id", "impression_time", "click_id", "click_time"),
    *("session_id", "session_start", "session_end", "events.list.element.event_id", "events.list.element.event_time"),
)
"""Parquet columns with few repeated values: building a dictionary for them would be wasted."""
_INTERPRETED = {
    # Small batches are over before generated code has paid for its generation and Java's compilers. A watermark is a
    # constant in it, so it is generated again for every batch, and compiling never ends.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
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
        settings: see ``[spark]``, and ``[s3]`` for a lake or input files in the object store.
        is_local: whether the lake is.
        log_file: where Spark's own log goes; None: only its errors are kept, on stderr.
        scratch: this process's own folder for temporary files. Without it Java uses the machine's, and trusts the
            machine's authorities and not s3.ca_file, as on a cluster.
        lifetime: how long the session will work.

    Raises:
        EnvironmentMissingError: the jars are missing.
        SettingsError: s3.ca_file is no certificate.
    """
    jars = jars_folder()
    if not any(jars.glob("delta-spark_*.jar")):
        raise EnvironmentMissingError(f"no Delta jar in {jars}: Spark cannot write tables; {mending()}")
    java_options = driver_options(lifetime, log_file=log_file, temporary=scratch)
    if scratch:
        java_options.extend(trust_options(settings.s3, scratch))
    properties = table_properties(settings.tables)
    return {
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.driver.extraClassPath": f"{jars}/*",
        # A folder of the lake may have a space in its name.
        "spark.driver.extraJavaOptions": shlex.join(java_options),
        "spark.sql.extensions": _DELTA + (",adloom.Extensions" if _has_own_jar() else ""),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
        "spark.sql.shuffle.partitions": str(partitions(settings.spark)),
        # Adaptive execution does not touch stateful stages, and costs time to plan the rest.
        "spark.sql.adaptive.enabled": "false",
        # Otherwise the plan of every batch is printed in full, for a web interface that is off.
        "spark.sql.ui.explainMode": "simple",
        # The queries and Delta generate more classes per batch than the default of 100; the rest would be recompiled.
        "spark.sql.codegen.cache.maxEntries": "4000",
        # An entry of Delta's log has more fields than the default of 100 allows in one generated class; every task that
        # reads the log would generate code for each of its steps, in every batch.
        "spark.sql.codegen.maxFields": "1000",
        # A Delta snapshot of a few hundred files in the default 50 partitions costs seconds a batch.
        "spark.databricks.delta.snapshotPartitions": "2",
        # VACUUM lists a table in this many tasks, one after the other on a small machine; the default is 10,000.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
        # Otherwise the error of a batch says what failed but not why: the cause is in Java's stack trace.
        "spark.sql.pyspark.jvmStacktrace.enabled": "true",
        # adloom judges duplicate keys itself; a variant that has some must not fail.
        "spark.sql.variant.allowDuplicateKeys": "true",
        # Of headers of Kafka with the same name the last counts, as for Kafka's own clients.
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
        # Spark's default, INT96, takes half as much time again to write, and has no statistics.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        **{f"spark.hadoop.parquet.enable.dictionary#{column}": "false" for column in _NEARLY_UNIQUE},
        "spark.databricks.delta.optimize.maxFileSize": str(settings.tables.target_file_bytes),
        # A file that has half the size stays: otherwise each late event makes a whole day be written again.
        "spark.databricks.delta.optimize.minFileSize": str(settings.tables.target_file_bytes // 2),
        "spark.databricks.delta.autoCompact.maxFileSize": str(settings.tables.target_file_bytes),
        **{_PROPERTY_OF_NEW_TABLES + name.removeprefix("delta."): value for name, value in properties.items()},
        **({} if is_one_process(settings) else _cluster_conf(settings.spark)),
        **(_INTERPRETED if lifetime is Lifetime.SHORT else {}),
        # Files of a local lake's input may lie there, too.
        **s3a_conf(settings.s3),
        **(_LOCAL_FILES if is_local else CHECKPOINTS | _log_store()),
        **streaming_conf(settings),
    }


def _log_store() -> dict[str, str]:
    """Delta's own store lists a whole log in an object store, several times a batch; see spark_jobs/spark/jars/java."""
    return {"spark.delta.logStore.s3a.impl": "adloom.TailLogStore"} if _has_own_jar() else {}


def _has_own_jar() -> bool:
    """Whether the classes of spark_jobs/spark/jars/java are there.

    A release may be newer than the jars of the machine that it runs on, and works without ours.
    """
    return (jars_folder() / "adloom.jar").is_file()


def is_one_process(settings: Settings) -> bool:
    """Whether Spark runs within the driver's process."""
    return settings.spark.master.startswith("local[") or settings.spark.master == "local"


def _cluster_conf(settings: SparkSettings) -> dict[str, str]:
    """The needs of separate executors: the jars, which Spark sends to them, and their share of the cluster.

    Keys of an object store and the CA of ``s3.ca_file`` are not sent: the machines of a cluster have their own.
    """
    jars = ",".join(jar.as_uri() for jar in sorted(jars_folder().glob("*.jar")))
    return {
        "spark.jars": jars,
        "spark.cores.max": str(settings.max_cores),
        "spark.executor.memory": settings.executor_memory,
        "spark.executor.extraJavaOptions": shlex.join(EXECUTOR_OPTIONS),
    }


def table_properties(settings: TablesSettings) -> dict[str, str]:
    """The properties of a Delta table that govern its maintenance, under Delta's own names."""
    return {
        "delta.autoOptimize.autoCompact": str(settings.auto_compact).lower(),
        "delta.logRetentionDuration": f"interval {milliseconds(settings.log_retention)} milliseconds",
        "delta.deletedFileRetentionDuration": f"interval {milliseconds(settings.file_retention)} milliseconds",
        # A checkpoint of the log lists every file of the table again, which is expensive for a table with many.
        "delta.checkpointInterval": "50",
    }


def streaming_conf(settings: Settings) -> dict[str, str]:
    """The part of :func:`spark_conf` that streaming queries read when they start."""
    conf = {
        # A batch without data could slip in between two batches and move the watermark. The same rows must be late in
        # every run: see docs/architecture.md, "Time".
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.stateStore.providerClass": IN_MEMORY,
        "spark.sql.streaming.join.stateFormatVersion": _JOIN_FORMATS[settings.spark.join_state],
        # A checkpoint keeps its own format, whatever is configured now, so this one must be allowed.
        "spark.sql.streaming.join.stateFormatV4.enabled": "true",
    }
    if settings.spark.state_store is StateStore.ROCKSDB:
        conf |= {
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        }
    return conf
