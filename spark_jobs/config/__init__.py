"""The settings: sections with units and meanings, and how they are read. No Spark."""
