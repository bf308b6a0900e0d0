"""Supervision of drivers: deciding what to do (``rules``), doing it (``watch``), and the DAG per job (``dag``)."""


def supervising_dag_id(job: str) -> str:
    """The id of the DAG that supervises ``job``."""
    return f"supervise_{job}"
