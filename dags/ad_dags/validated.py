"""Validated gold as assets: that a version of a table has passed the quality gate.

The assets are told of through an alias, because a task that succeeds tells of all its other outlets, changed or not.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk import Asset, AssetAlias

from ad_dags.lakes import LakeRef
from spark_jobs.contracts.places import VALIDATED
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import VALIDATED_TABLES


def validated_gold(lake: LakeRef) -> AssetAlias:
    """The alias through which versions of ``lake`` are told of."""
    return AssetAlias(lake.named("adloom_validated_gold"))


def validated_assets(lake: LakeRef) -> dict[str, Asset]:
    """By table of gold, the asset that consumers have as their schedule."""
    gold = [table for table in VALIDATED_TABLES if table.path.startswith("gold/")]
    return {table.name: Asset(lake.named(f"adloom/{table.path}")) for table in gold}


def read_validated(lake: Lake) -> dict[str, int]:
    """By table, the last version that has passed its validation."""
    try:
        versions = json.loads(lake.files.read(VALIDATED) or b"{}")
    except ValueError:
        return {}  # the validation reports the damage
    return versions if isinstance(versions, dict) else {}


def not_told(assets: Mapping[str, Asset], validated: Mapping[str, int], events: Iterable[Any]) -> dict[str, int]:
    """By table of gold, the version that was validated and is not the one that was told of last.

    Args:
        assets: by table, as of :func:`validated_assets`.
        validated: by table, the last version that has passed.
        events: Airflow's events of the assets, oldest first.
    """
    told = {event.asset.name: (event.extra or {}).get("version") for event in events}
    return {
        table: validated[table]
        for table, asset in assets.items()
        if table in validated and validated[table] != told.get(asset.name)
    }
