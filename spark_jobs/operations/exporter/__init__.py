"""Prometheus metrics of a lake that its jobs cannot report themselves."""
