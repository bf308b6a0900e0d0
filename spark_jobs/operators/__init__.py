"""One stateful streaming operator per module."""
