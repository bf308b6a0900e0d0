"""The mapping language: a subset of Spark SQL expressions over one JSON record.

Users write it in the settings to say where in their records adloom finds what it needs. An expression is parsed once,
and then rendered for Spark (:func:`to_sql`) or evaluated in Python (:func:`evaluate`); both agree. It never raises for
a record: what cannot be computed is null, and counts as a failure.
"""

from spark_jobs.mapping.errors import MappingError
from spark_jobs.mapping.expression import Expression, evaluate, failure_sql, parse_expression, to_sql
from spark_jobs.mapping.paths import Path
from spark_jobs.mapping.record import Record
from spark_jobs.mapping.schema import RecordSchema
from spark_jobs.mapping.types import Evaluated, Type

__all__ = [
    "Evaluated",
    "Expression",
    "MappingError",
    "Path",
    "Record",
    "RecordSchema",
    "Type",
    "evaluate",
    "failure_sql",
    "parse_expression",
    "to_sql",
]
