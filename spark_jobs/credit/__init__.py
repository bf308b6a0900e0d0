"""Credit: the touches that led to each conversion, and their shares of its value."""
