"""One stateful streaming operator a module."""
