"""Measures what adloom costs: `make bench`."""
