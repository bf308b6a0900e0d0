"""Thin entry points: settings, read, operators, write."""
