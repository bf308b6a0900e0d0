"""Rules for every table of a lake, checked with Great Expectations; reports as static HTML."""
