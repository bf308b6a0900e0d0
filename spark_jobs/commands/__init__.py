"""Arguments and help texts of each command. A command imports its implementation when it runs, so `--help` is quick."""
