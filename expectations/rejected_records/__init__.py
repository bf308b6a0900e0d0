"""The report's part about records that did not fit: whose verdict is not ok."""
