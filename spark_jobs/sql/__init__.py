"""SQL over the tables of a lake, for people: without Spark."""
