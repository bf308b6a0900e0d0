"""What the state functions decide, as pure functions: no Spark, no clock."""
