"""The streaming queries, a folder each: what it is, its operator, how its rows are corrected and its state rebuilt."""
