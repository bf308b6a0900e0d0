"""A lake as it lies on disk or in an object store: its layout, and the notes in its tables' commits."""
