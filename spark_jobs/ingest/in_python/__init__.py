"""The judgement of records without Spark: a twin of the Spark one, held together by tests/spark/test_twins.py."""
