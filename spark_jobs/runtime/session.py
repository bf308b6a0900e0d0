"""The Spark session of an embedded run, and what the machine must have for it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from pyspark.sql import SparkSession

import spark_jobs
from spark_jobs.contracts.choices import JoinState, StateStore
from spark_jobs.contracts.durations import milliseconds
from spark_jobs.contracts.errors import EnvironmentMissingError
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.sections import SparkSettings, TablesSettings
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.spark_names import IN_MEMORY, ROCKSDB
from spark_jobs.runtime.s3a import name_profile, s3a_conf, trust_options
from spark_jobs.runtime.scratch import make_scratch, name_owners

JARS = Path(sys.prefix) / "share" / "adloom" / "jars"
"""Where `make setup` puts the jars that Spark needs beside its own."""

_JAVA_VERSIONS = (17, 21)
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
_JVM_OPTIONS = (
    # Spark's generated code for judging a record is longer than what the JVM compiles unasked: 3 times slower then.
    "-XX:-DontCompileHugeMethods",
    # Batches want throughput; the default collector pays for short pauses with every store.
    "-XX:+UseParallelGC",
    # The defaults make it collect the whole heap several times while Spark's classes are loaded.
    "-XX:MetaspaceSize=256m",
)


class Lifetime(Enum):
    """How long a session is to work: by that Java compiles."""

    SHORT = auto()
    """Seconds of data: the run is over before optimized code has paid for its making."""
    RUN = auto()
    """Minutes."""
    SERVICE = auto()
    """Days."""


_OPTIONS_BY_LIFETIME = {
    # With one compiler the code cache has 48 MB by default, which is too little for Spark.
    Lifetime.SHORT: ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"),
    Lifetime.RUN: (
        # Ten times the defaults: in minutes the optimizing compiler costs a small machine more than it gains.
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
    ),
    # In days more is compiled than fits into the default of 240 MB; then compiling would stop.
    Lifetime.SERVICE: ("-XX:ReservedCodeCacheSize=512m",),
}
_EXECUTOR_OPTIONS = ("-XX:-DontCompileHugeMethods", "-XX:+UseParallelGC")
_LOG4J = Path(__file__).with_name("log4j2.properties")


def start_session(
    settings: Settings, *, lake: Lake | None = None, log_file: Path | None = None, lifetime: Lifetime = Lifetime.RUN
) -> SparkSession:
    """A Spark session for a run, or the one that is already there, as it is.

    Args:
        settings: see ``[spark]``, and ``[s3]`` for a lake that is not local.
        lake: that the session is for; by default a local one.
        log_file: where Spark's own log goes; by default it is thrown away but for errors on stderr.
        lifetime: how long it is to work.

    Raises:
        EnvironmentMissingError: Java or the jars are missing.
        SettingsError: s3.ca_file is no certificate.
    """
    if running := SparkSession.getActiveSession():
        return running
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted:
        check_java()
    is_local = lake is None or lake.is_local
    if not is_local:
        name_profile(settings.s3)
    builder = SparkSession.builder.appName("adloom")
    if is_submitted:
        # Java runs already, with what `adloom submit` has told it; its folders are the cluster's.
        return _configured(builder, streaming_conf(settings)).getOrCreate()
    builder = builder.master(settings.spark.master)
    scratch = _own_scratch()
    conf = spark_conf(settings, is_local=is_local, log_file=log_file, scratch=scratch, lifetime=lifetime)
    builder = _configured(builder, conf)
    if _is_one_process(settings):
        # Spark binds the machine's outer address otherwise.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # State functions run in processes of the same Python, with the same packages.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with _local_dirs(scratch):
        spark = builder.getOrCreate()
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    assert jvm is not None  # noqa: S101 it was started just now
    _put_prints_into(log_file, jvm)
    if not _is_one_process(settings):
        # State functions are looked for by name where they run: this release of them, not the one installed there.
        spark.sparkContext.addPyFile(str(_package(scratch)))
    # Java goes on for a moment when Python is killed.
    java = jvm.java.lang.ProcessHandle.current().pid()
    name_owners(scratch, [os.getpid(), int(java)])
    return spark


def _put_prints_into(log_file: Path | None, jvm: Any) -> None:
    """What Python processes of Spark print, lines for every batch, goes to its log; errors go to stderr by log4j."""
    streams = jvm.java.io
    out = streams.FileOutputStream(str(log_file), True) if log_file else streams.OutputStream.nullOutputStream()
    jvm.java.lang.System.setErr(streams.PrintStream(out, True))


def _package(folder: Path) -> Path:
    """This package as a zip file in ``folder``."""
    package, file = Path(spark_jobs.__file__).parent, folder / "adloom_package.zip"
    with ZipFile(file, "w") as archive:
        for module in sorted(package.rglob("*.py")):
            archive.write(module, module.relative_to(package.parent))
    return file


@cache
def _own_scratch() -> Path:
    """Java outlives a session, and with it its folder: one for this process."""
    return make_scratch()


@contextmanager
def _local_dirs(folder: Path) -> Iterator[None]:
    """Has the Java that is started meanwhile use ``folder``; other programs that this one starts have their own."""
    before = os.environ.get("SPARK_LOCAL_DIRS")
    os.environ["SPARK_LOCAL_DIRS"] = str(folder)
    try:
        yield
    finally:
        del os.environ["SPARK_LOCAL_DIRS"]
        if before is not None:
            os.environ["SPARK_LOCAL_DIRS"] = before


def _configured(builder: SparkSession.Builder, conf: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder


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
        log_file: see :func:`start_session`.
        scratch: folder for temporary files; by default the machine's.
        lifetime: see :func:`start_session`.

    Raises:
        EnvironmentMissingError: the jars are missing.
        SettingsError: s3.ca_file is no certificate.
    """
    if not any(JARS.glob("delta-spark_*.jar")):
        raise EnvironmentMissingError(f"no Delta jar in {JARS}: Spark cannot write tables; run `make setup`")
    java_options = [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"]
    if log_file:
        java_options.append(f"-Dadloom.log={log_file}")
    if scratch:
        # Native libraries are unpacked there, tens of MB for each process.
        java_options.append(f"-Djava.io.tmpdir={scratch}")
    java_options.extend((*_JVM_OPTIONS, *_OPTIONS_BY_LIFETIME[lifetime]))
    if not is_local:
        java_options.extend(trust_options(settings.s3))
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
        "spark.sql.shuffle.partitions": str(settings.spark.partitions),
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
        **({} if _is_one_process(settings) else _cluster_conf(settings.spark)),
        **(_LOCAL_FILES if is_local else s3a_conf(settings.s3)),
        **streaming_conf(settings),
    }


def _is_one_process(settings: Settings) -> bool:
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
        "spark.executor.extraJavaOptions": " ".join(_EXECUTOR_OPTIONS),
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


@contextmanager
def using(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Has queries that are started meanwhile go by ``conf``."""
    before: dict[str, str | None] = {key: spark.conf.get(key, None) for key in conf}
    try:
        for key, value in conf.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, was in before.items():
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)


def check_java() -> None:
    """Checks that the Java that Spark would start is one it runs on.

    Raises:
        EnvironmentMissingError: there is none, or its version is not one of those tested.
    """
    wanted = f"install Java {_JAVA_VERSIONS[0]} (Debian: apt-get install openjdk-17-jre-headless)"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java or not Path(java).is_file():
        raise EnvironmentMissingError(f"no Java found ({'JAVA_HOME=' + home if home else 'PATH'}); {wanted}")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
    version = re.search(r'version "(\d+)', told)
    if not version or int(version[1]) not in _JAVA_VERSIONS:
        found = version[1] if version else "an unknown version"
        raise EnvironmentMissingError(
            f"{java} is Java {found}; adloom runs on Java 17 or 21: {wanted}, or set JAVA_HOME"
        )
