"""What the tests share: an oracle that knows nothing of Spark, a reader of Delta tables, a notation for test cases."""
