"""The jobs: Spark applications, each with streaming queries of its own (:mod:`spark_jobs.queries.registry`)."""

from dataclasses import dataclass

DEDUPLICATE_JOB = "deduplicate"
ATTRIBUTE_JOB = "attribute"
MEASURE_JOB = "measure"


@dataclass(frozen=True)
class Job:
    """A Spark application."""

    name: str
    summary: str
    """Its purpose in one sentence, for help and docs."""
    is_optional: bool = False
    """Whether a lake can run without it."""


JOBS = (
    Job(
        DEDUPLICATE_JOB,
        "Validates every record into bronze and writes each event once to silver; adds heartbeats in silence.",
    ),
    Job(ATTRIBUTE_JOB, "Joins clicks to impressions and groups each user's events into sessions, from silver."),
    Job(MEASURE_JOB, "Computes campaign statistics, moving averages and user status, from silver.", is_optional=True),
)
"""In the order in which rows flow."""
OPTIONAL_JOBS = tuple(job.name for job in JOBS if job.is_optional)
JOB_NAMES = tuple(job.name for job in JOBS)


def jobs_of_run(*, measure: bool) -> tuple[str, ...]:
    """Names of the jobs of a bounded run, with the optional ones or without."""
    return tuple(job.name for job in JOBS if measure or not job.is_optional)
