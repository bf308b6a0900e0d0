"""Records judged and written to bronze."""
