"""Airflow's REST API, as a reader: DAGs that wait for days, the announcements of days, and the runs of a DAG.

Source: `Airflow, "Airflow REST API"
<https://airflow.apache.org/docs/apache-airflow/stable/stable-rest-api-ref.html>`_, version 2.
"""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from spark_jobs.days.missed import Announcement, Consumer, Run, asset_names, day_asset
from spark_jobs.errors import AirflowApiError, SettingsError
from spark_jobs.http import open_url

_TIMEOUT_S = 30
_PAGE = 100
"""Airflow's own limit, unless somebody has raised it."""
_DAY_ASSET = re.compile(r"\w*" + day_asset(r"\w+", "(complete|restated)"))
_REFUSED = (401, 403)


@dataclass(frozen=True)
class AirflowApi:
    """The API of the Airflow at ``address``, as the user whose ``token`` it is.

    Raises:
        SettingsError: ``address`` is no http or https URL.
    """

    address: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        """Checks the address."""
        if urlsplit(self.address).scheme not in ("http", "https"):
            raise SettingsError(f"{self.address!r} is no http or https URL; write it like http://localhost:8080")

    def consumers(self) -> list[Consumer]:
        """The DAGs that have a run for each day of some table, by id.

        Raises:
            AirflowApiError: Airflow does not answer, or refuses.
        """
        assets = self._every("/assets", "assets", name_pattern=day_asset("%", "%"), order_by="id")
        days = [asset for asset in assets if _DAY_ASSET.fullmatch(asset["name"])]
        dags = sorted({dag["dag_id"] for asset in days for dag in asset["scheduled_dags"]})
        found = [self._get(f"/dags/{quote(dag, safe='')}/details") for dag in dags]
        return [
            Consumer(dag["dag_id"], dag["is_paused"], dag["asset_expression"])
            for dag in found
            if dag["timetable_partitioned"] and not dag["is_stale"]
        ]

    def announcements(self, consumer: Consumer, since: datetime) -> list[Announcement]:
        """The announcements since ``since`` that have a partition key, of the assets that ``consumer`` waits for.

        Raises:
            AirflowApiError: Airflow does not answer, or refuses.
        """
        query = {"timestamp_gte": since.isoformat(), "order_by": "timestamp"}
        # A pattern also finds longer names, such as those with the prefix of another lake.
        return [
            Announcement(event["partition_key"], name, datetime.fromisoformat(event["timestamp"]))
            for name in sorted(set(asset_names(consumer.expression)))
            for event in self._every("/assets/events", "asset_events", name_pattern=name, **query)
            if event["partition_key"] and event["name"] == name
        ]

    def runs(self, consumer: Consumer, since: datetime) -> list[Run]:
        """The runs of ``consumer`` for partitions that have changed since ``since``: made, ended or cleared.

        Raises:
            AirflowApiError: Airflow does not answer, or refuses.
        """
        path = f"/dags/{quote(consumer.dag_id, safe='')}/dagRuns"
        runs = self._every(path, "dag_runs", updated_at_gte=since.isoformat(), order_by="run_after")
        return [
            Run(
                run["dag_run_id"],
                run["partition_key"],
                run["state"],
                datetime.fromisoformat(run["queued_at"] or run["run_after"]),
            )
            for run in runs
            if run["partition_key"]
        ]

    def _every(self, path: str, name: str, **query: str) -> Iterator[dict[str, Any]]:
        """All entries of a list, page by page."""
        offset = 0
        while True:
            page = self._get(f"{path}?{urlencode({**query, 'limit': _PAGE, 'offset': offset})}")
            yield from page[name]
            offset += len(page[name])
            if not page[name] or offset >= page["total_entries"]:
                return

    def _get(self, path: str) -> dict[str, Any]:
        url, headers = f"{self.address.rstrip('/')}/api/v2{path}", {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 the scheme was checked
        try:
            with open_url(request, timeout_s=_TIMEOUT_S) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            with error:
                raise AirflowApiError(self._refusal(error, path)) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise AirflowApiError(f"Airflow at {self.address} does not answer: {reason}; check --airflow") from None
        except ValueError:
            raise AirflowApiError(
                f"{self.address} does not answer with JSON; check that --airflow is Airflow's address, with its path"
            ) from None

    def _refusal(self, error: urllib.error.HTTPError, path: str) -> str:
        resource = path.partition("?")[0]
        if error.code in _REFUSED:
            return (
                f"Airflow at {self.address} refuses the token for {resource} (HTTP {error.code}); tokens expire: set "
                "ADLOOM_AIRFLOW_TOKEN to a new one, of a user who may read assets, DAGs and their runs"
            )
        return f"Airflow at {self.address} answers {resource} with HTTP {error.code}: {error.reason}; check --airflow"
