"""An Airflow DAG that starts when both attributions and sessions were validated, and says which versions have passed.

Put it into Airflow's folder of DAGs, next to adloom's. What it reads at these versions, as in `adloom sql --as-of`, has
passed the quality gate; what the jobs have written since then has not.
"""

import logging
from typing import Any

from airflow.sdk import DAG, Asset, task

ATTRIBUTIONS, SESSIONS = Asset("adloom/gold/attributions"), Asset("adloom/gold/sessions")
_log = logging.getLogger(__name__)


def publish(*, triggering_asset_events: Any = None) -> dict[str, int]:
    """Returns by table the newest version that was validated."""
    events = [event for asset in triggering_asset_events for event in triggering_asset_events[asset]]
    versions = {
        event.asset.name.rpartition("/")[2]: event.extra["version"]
        for event in sorted(events, key=lambda event: event.timestamp)
    }
    _log.info("validated: %s", versions)
    return versions


with DAG(
    "publish_gold",
    description=(__doc__ or "").partition("\n")[0],
    doc_md=__doc__,
    schedule=ATTRIBUTIONS & SESSIONS,
    catchup=False,
    tags=["example"],
):
    task(publish)()
