"""Modules of the DAGs; nothing here loads Spark, pandas or Great Expectations when it is imported."""
