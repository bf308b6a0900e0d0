"""Jobs that run: services, bounded runs, checkpoints, resets and drains."""
