"""Spark's own log: an error that quotes a record steers no terminal on which the file is read."""

from pathlib import Path

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

_CONFIGURATION = Path(__file__).parents[2] / "spark_jobs" / "spark" / "log4j2.properties"
_HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202e"


def test_neither_a_line_of_sparks_log_nor_its_trace_steers_a_terminal(tmp_path: Path) -> None:
    log, conf = tmp_path / "spark.log", SparkConf(loadDefaults=False)
    conf.set("spark.driver.memory", "256m")
    options = f"-Dlog4j2.configurationFile={_CONFIGURATION} -Dadloom.log={log}"
    conf.set("spark.driver.extraJavaOptions", options)
    gateway = launch_gateway(conf)  # type: ignore[no-untyped-call] # it has no types
    try:
        error = gateway.jvm.java.lang.RuntimeException(f"of Java {_HOSTILE}")
        gateway.jvm.org.apache.logging.log4j.LogManager.getLogger("records").error(
            f"of adloom {_HOSTILE}\nZürich", error
        )
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    written = log.read_text(encoding="utf-8")
    assert "of adloom ?]0;owned??[2J?31m??\nZürich" in written
    assert "of Java ?]0;owned?" in written
    assert [one for one in written if not one.isprintable() and one not in "\n\t"] == []
