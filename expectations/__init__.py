"""Rules for every table of a lake, checked with Great Expectations and reported as static HTML."""
