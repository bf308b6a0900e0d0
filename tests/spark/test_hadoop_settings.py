"""Hadoop's settings as they go to the tasks of a batch."""

from pyspark.sql import SparkSession


def test_they_carry_no_notes_on_where_each_comes_from(spark: SparkSession) -> None:
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    # Of the settings of the session itself, which are added each time, there are notes.
    own = len(spark.sparkContext.getConf().getAll())
    found = settings.iterator()
    names = []
    while found.hasNext():
        names.append(found.next().getKey())
    noted = [name for name in names if settings.getPropertySources(name)]
    assert len(names) > 1000
    assert len(noted) <= own + 20
