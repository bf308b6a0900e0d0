"""What was committed, and of what it was made, as events of OpenLineage."""
