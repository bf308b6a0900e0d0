"""What surrounds the jobs: the Spark session, life cycle, locks, progress."""
