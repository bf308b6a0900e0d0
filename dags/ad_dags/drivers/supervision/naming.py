"""Names that several parts of Airflow must agree on."""


def supervising_dag_id(job: str) -> str:
    """The id of the DAG that supervises ``job``."""
    return f"supervise_{job}"
