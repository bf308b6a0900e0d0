"""A JVM without a Spark session, for clients that only Java has."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from spark_jobs.config.settings import Settings
from spark_jobs.spark.conf import spark_conf
from spark_jobs.spark.java import Lifetime, check_java

_HEAP = "256m"


@contextmanager
def java_gateway(settings: Settings) -> Iterator[Any]:
    """Java's classes, those of adloom's jars included, as py4j exposes them; the JVM ends with the context.

    Raises:
        EnvironmentMissingError: Java or the jars are missing.
    """
    check_java()
    conf = SparkConf(loadDefaults=False)
    for name, value in spark_conf(settings, lifetime=Lifetime.SHORT).items():
        if name.startswith("spark.driver."):
            conf.set(name, value)
    conf.set("spark.driver.memory", _HEAP)
    gateway = launch_gateway(conf)  # type: ignore[no-untyped-call] # it has no types
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends when its standard input does
        gateway.proc.wait()
