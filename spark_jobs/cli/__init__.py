"""The command ``adloom``: a module for each command, its arguments and help above, what it does below.

What a command needs is imported when it runs: ``--help`` answers at once. Releases in a lake start their drivers by
``from spark_jobs.cli import main``.
"""

from spark_jobs.cli.app import app, main

__all__ = ["app", "main"]
