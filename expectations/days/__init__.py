"""The report's part about days: which are done, and which were restated since."""
