"""Commits and their inputs as events of OpenLineage."""
