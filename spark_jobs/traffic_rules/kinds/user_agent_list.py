"""Marks events whose user agent matches a pattern."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.traffic_rules.kinds.common import marks, wanted
from spark_jobs.traffic_rules.patterns import any_of, parse_pattern
from spark_jobs.traffic_rules.rules import UserAgentRule


def user_agent_list(events: DataFrame, rule: UserAgentRule) -> DataFrame:
    """The events whose ``user_agent`` matches one of the patterns; the evidence is the first that matches.

    Each distinct user agent is matched once.
    """
    patterns = tuple(map(parse_pattern, rule.patterns))
    found = wanted(events, rule)
    agents = found.select("user_agent").distinct().where(F.rlike("user_agent", F.lit(any_of(patterns))))
    known = events.sparkSession.createDataFrame(
        [(place, pattern.text, f"(?d){pattern.java}") for place, pattern in enumerate(patterns)],
        "place INT, pattern STRING, java STRING",
    )
    # Pattern by pattern, for all agents: each pattern is compiled once.
    fitting = known.join(F.broadcast(agents), on=F.rlike("user_agent", F.col("java")), how="inner")
    first = fitting.groupBy("user_agent").agg(F.min_by("pattern", "place").alias("pattern"))
    return marks(found.join(first, on="user_agent", how="inner"), pattern=F.col("pattern"))
