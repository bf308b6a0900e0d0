"""What the DAGs are made of; nothing here loads Spark, pandas or Great Expectations when it is imported."""
