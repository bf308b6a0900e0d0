"""The time of a batch is one for all its rows, and costs no new code."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.ingest.arriving import arriving_files
from spark_jobs.ingest.judge import judge
from tests.support.equality import generate_source
from tests.support.runs import ONE_BY_ONE


def test_each_batch_has_a_time_of_its_own_and_no_new_code(spark: SparkSession, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=400, seed=5, files=4)
    settings = Settings.model_validate({"ingest": ONE_BY_ONE})
    java = spark._jvm
    assert java is not None
    compiled = java.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    times: list[tuple[int, int]] = []
    classes: list[int] = []

    def look(batch: DataFrame, _batch_id: int) -> None:
        found = batch.agg(F.count_distinct("ingest_time"), F.min(F.unix_micros("ingest_time"))).collect()
        times.extend(tuple(row) for row in found)
        classes.append(compiled.getCount())

    judged = judge(arriving_files(spark, settings, source), settings)
    query = judged.writeStream.foreachBatch(look).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert [distinct for distinct, _ in times] == [1] * 4
    assert len({time for _, time in times}) == 4
    # What the first batches need of code is there with the second.
    assert classes[1:] == [classes[1]] * 3
