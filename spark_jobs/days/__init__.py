"""When a day of a table is complete."""
