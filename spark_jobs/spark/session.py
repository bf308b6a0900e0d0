"""The Spark session of a process."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

import spark_jobs
from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.spark import shared_java
from spark_jobs.spark.conf import is_one_process, spark_conf, streaming_conf
from spark_jobs.spark.jars.ready import ready_jars
from spark_jobs.spark.java import Lifetime, check_java
from spark_jobs.spark.s3a import name_profile
from spark_jobs.spark.scratch import make_scratch, name_owners


def start_session(
    settings: Settings, *, lake: Lake | None = None, log_file: Path | None = None, lifetime: Lifetime = Lifetime.RUN
) -> SparkSession:
    """A Spark session for a run, or the active one, unchanged.

    Args:
        settings: see ``[spark]``, and ``[s3]`` for a lake that is not local.
        lake: the lake to work on; by default a local one.
        log_file: where Spark's own log goes; None: only its errors are kept, on stderr.
        lifetime: how long it will work.

    Raises:
        EnvironmentMissingError: Java is missing, the jars are and cannot be fetched, or shared Java cannot be had.
        SettingsError: s3.ca_file is no certificate.
    """
    if running := SparkSession.getActiveSession():
        return running
    is_local = lake is None or lake.is_local
    name_profile(settings.s3)
    if is_submitted():
        # The JVM is running already, with the options of `adloom submit`; its folders are the cluster's.
        return _configured(SparkSession.builder.appName("adloom"), streaming_conf(settings)).getOrCreate()
    ready_jars()
    if is_one_process(settings):
        # Otherwise Spark binds the machine's outer address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # State functions run in processes of the same Python, with the same packages.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if settings.spark.keep_java:
            return shared_java.join(settings, is_local=is_local, lifetime=lifetime)
    check_java()
    return start_own(settings, is_local=is_local, log_file=log_file, lifetime=lifetime)


def is_submitted() -> bool:
    """Whether a cluster runs this process, with a Java of its own: see ``adloom submit``."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def stop_session(spark: SparkSession) -> None:
    """Ends ``spark``, and its Java unless others share it."""
    if not shared_java.leave():
        spark.stop()


def start_own(settings: Settings, *, is_local: bool, log_file: Path | None, lifetime: Lifetime) -> SparkSession:
    """A Spark session in a Java that this process starts; the environment is that of :func:`start_session`.

    Raises:
        EnvironmentMissingError: the jars are missing.
        SettingsError: s3.ca_file is no certificate.
    """
    builder = SparkSession.builder.appName("adloom").master(settings.spark.master)
    scratch = _own_scratch()
    conf = spark_conf(settings, is_local=is_local, log_file=log_file, scratch=scratch, lifetime=lifetime)
    builder = _configured(builder, conf)
    with _local_dirs(scratch):
        spark = builder.getOrCreate()
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    assert jvm is not None  # noqa: S101 it was started just now
    _put_prints_into(log_file, jvm)
    _forget_origins(spark, jvm, is_local=is_local)
    if not is_one_process(settings):
        # Executors import state functions by name: from this release, not from one installed there.
        spark.sparkContext.addPyFile(str(_package(scratch)))
    # The JVM outlives a killed Python process for a moment.
    java = jvm.java.lang.ProcessHandle.current().pid()
    name_owners(scratch, [os.getpid(), int(java)])
    return spark


def _forget_origins(spark: SparkSession, jvm: Any, *, is_local: bool) -> None:
    """Makes Hadoop forget where each of its settings comes from.

    Hadoop's settings go to the tasks of every batch several times, and with each of some 1,200 of them goes, compressed
    by itself, a note on its origin: five sixths of the time that it takes. No public method drops the notes. Classes
    that add settings when they are loaded make Hadoop read all of them again, so they are loaded first.
    """
    settings = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    with suppress(Py4JError):  # another Hadoop: it works all the same
        for name in ("hdfs.HdfsConfiguration", "mapred.JobConf", *(() if is_local else ("fs.s3a.S3AFileSystem",))):
            jvm.java.lang.Class.forName(f"org.apache.hadoop.{name}")
        settings.size()  # reads them all
        origins = settings.getClass().getDeclaredField("updatingResource")
        origins.setAccessible(True)
        origins.get(settings).clear()


def _put_prints_into(log_file: Path | None, jvm: Any) -> None:
    """Sends what Spark's Python workers print, lines for every batch, to its log; log4j sends errors to stderr."""
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
    """One folder for the process: the JVM, which uses it, outlives a session."""
    return make_scratch()


@contextmanager
def _local_dirs(folder: Path) -> Iterator[None]:
    """Makes a JVM that starts meanwhile use ``folder``; other programs that this process starts have their own."""
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


@contextmanager
def using(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Queries that start meanwhile use ``conf``."""
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
