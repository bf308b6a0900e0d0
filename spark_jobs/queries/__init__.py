"""The streaming queries, a folder each: its declaration, operator, correction, and the rebuilding of its state."""
