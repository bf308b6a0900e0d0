"""Statistics of campaigns by window."""
