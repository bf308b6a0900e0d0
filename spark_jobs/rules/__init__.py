"""What a state function decides, as plain functions over plain values: no Spark, no clock."""
