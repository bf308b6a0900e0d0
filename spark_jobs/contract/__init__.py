"""The promises of adloom to those who send it events and to those who read its tables. No Spark."""
