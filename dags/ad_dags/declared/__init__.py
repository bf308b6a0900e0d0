"""The DAGs that each lake has once: one per module, which is named as the DAG and whose docstring is its page."""
