"""The DAGs that each lake has once: one per module, with its page (the docstring), schedule, form and tasks."""
