"""Events marked as invalid traffic."""
