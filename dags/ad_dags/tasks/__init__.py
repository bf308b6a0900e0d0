"""The bodies of the DAGs' tasks."""
