"""Operating a lake: backup, maintenance, releases, checks and metrics."""
