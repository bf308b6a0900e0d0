"""The state functions in Python."""
