"""Marking events as invalid traffic."""
