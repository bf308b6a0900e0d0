"""Sessions of users."""
