"""Moving averages of users' measures."""
