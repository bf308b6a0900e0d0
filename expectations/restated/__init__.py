"""The report's part about restatements: rows of gold that were changed after they had been written."""
