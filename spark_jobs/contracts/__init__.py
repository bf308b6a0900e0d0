"""What flows and what it means: events, tables, settings, errors. No Spark, no IO."""
