"""What the command line prints: one module a command."""
