"""What each command takes, and what `--help` teaches of it. A command imports what it needs when it is called."""
