"""Validating the tables, drawing the charts, and telling other DAGs of versions of gold that were validated."""

import logging
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from ad_dags.clock import utc_now
from ad_dags.days import REMEMBERED
from ad_dags.lakes import LakeRef
from ad_dags.place import Place
from ad_dags.programs import CommandError
from ad_dags.tasks.commands import run_adloom
from ad_dags.tasks.maintenance import place_of_started_lake
from ad_dags.validated import not_told, read_validated, validated_assets, validated_gold

_FAILED = 1
"""Exit code of a validation in which a critical expectation failed, and of one that could not run."""
_log = logging.getLogger(__name__)


def validate_tables(lake: LakeRef, *, inlet_events: Any = None, outlet_events: Any = None) -> str:
    """Validates what is new in the tables. A warning is logged; a failed critical expectation is an error.

    If none fails, it emits an event for each table of gold with a validated version that was not told of yet.
    """
    place = place_of_started_lake(lake)
    code, output = run_adloom(place, ["validate"], ["--critical"], allowed=(0, _FAILED))
    if code == _FAILED:
        failed = "; ".join(line.strip() for line in output.splitlines() if line.strip().startswith("critical: "))
        if not failed:
            raise CommandError(output.splitlines()[-1] if output else "adloom validate printed nothing")
        # A retry would find the same.
        raise AirflowFailException(failed)
    _tell(lake, place, inlet_events, outlet_events)
    return output


def draw_overview(lake: LakeRef) -> str:
    """Renders the page of charts about the tables."""
    _, output = run_adloom(place_of_started_lake(lake), ["report"])
    return output


def _tell(lake: LakeRef, place: Place, inlet_events: Any, outlet_events: Any) -> None:
    alias, assets = validated_gold(lake), validated_assets(lake)
    # Without the bound, every event there ever was would be read each time.
    events = inlet_events[alias].after((utc_now() - REMEMBERED).isoformat())
    for table, version in not_told(assets, read_validated(place.lake), events).items():
        outlet_events[alias].add(assets[table], extra={"version": version})
        _log.info("%s: version %s was validated", table, version)
