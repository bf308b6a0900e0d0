"""Marks events whose user agent fits a pattern."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.traffic_rules.kinds.common import marks, wanted
from spark_jobs.traffic_rules.patterns import any_of, parse_pattern
from spark_jobs.traffic_rules.rules import UserAgentRule


def user_agent_list(events: DataFrame, rule: UserAgentRule) -> DataFrame:
    """The events whose ``user_agent`` fits one of the patterns; the evidence is the first that fits.

    Each user agent is looked at once, however many events have it.
    """
    patterns = tuple(map(parse_pattern, rule.patterns))
    found = wanted(events, rule)
    agents = found.select("user_agent").distinct().where(F.rlike("user_agent", F.lit(any_of(patterns))))
    known = events.sparkSession.createDataFrame(
        [(place, pattern.text, f"(?d){pattern.java}") for place, pattern in enumerate(patterns)],
        "place INT, pattern STRING, java STRING",
    )
    # All agents for one pattern after the other: each pattern is compiled once.
    fitting = known.join(F.broadcast(agents), on=F.rlike("user_agent", F.col("java")), how="inner")
    first = fitting.groupBy("user_agent").agg(F.min_by("pattern", "place").alias("pattern"))
    return marks(found.join(first, on="user_agent", how="inner"), pattern=F.col("pattern"))
