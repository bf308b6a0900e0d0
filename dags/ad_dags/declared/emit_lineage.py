"""Tells OpenLineage what was committed to the tables and what validations found.

Runs every 10 minutes, and is skipped unless `lineage.transport` in the settings says where to send events. Each version
of a table and each validation is told once; a run that fails or is killed leaves nothing out. The task's log has a line
for each event. If OpenLineage's provider is installed in Airflow and has a transport, each event names the task that
sent it as its parent.

The first run tells everything that the tables' logs still have. To begin with what comes next instead, run
`adloom lineage --from-now` once.
"""

from airflow.sdk import DAG, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.lineage import emit_lineage


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("emit_lineage", __doc__, tag="maintenance", schedule="*/10 * * * *") as dag:
        task(emit_lineage)(own.lake)
    return dag
