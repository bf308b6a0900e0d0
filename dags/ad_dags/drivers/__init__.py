"""Starts, watches, replaces and stops the drivers of jobs."""
