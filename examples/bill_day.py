"""An Airflow DAG that starts when a day of attributions is complete, and again when the day is restated.

Put it into Airflow's folder of DAGs, next to adloom's. It has one run for each date, which is the run's partition key.
"""

import logging
from typing import Any

from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

COMPLETE, RESTATED = Asset("adloom_attributions_day_complete"), Asset("adloom_attributions_day_restated")
_log = logging.getLogger(__name__)


def bill(*, dag_run: Any = None, triggering_asset_events: Any = None) -> str:
    """Says which day is to be billed, and what has changed if it was billed before. Returns the date."""
    day: str = dag_run.partition_key
    for events in (triggering_asset_events[asset] for asset in triggering_asset_events):
        for event in events:
            _log.info("%s: %s %s", event.asset.name, day, (event.extra or {}).get(day))
    return day


with DAG(
    "bill_day",
    description=(__doc__ or "").partition("\n")[0],
    doc_md=__doc__,
    schedule=PartitionedAssetTimetable(assets=COMPLETE | RESTATED),
    catchup=False,
    tags=["example"],
):
    task(bill)()
