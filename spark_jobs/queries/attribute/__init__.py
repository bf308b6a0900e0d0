"""Every click joined to its impression."""
