"""Each event once."""
