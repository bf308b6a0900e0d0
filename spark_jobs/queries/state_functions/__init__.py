"""What the state functions in Python share."""
