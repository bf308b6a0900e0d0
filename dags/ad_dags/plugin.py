"""Adds the pages Streams and Data quality to Airflow's UI; Airflow finds it by the entry point ``airflow.plugins``."""

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from ad_dags.pages.app import app


class AdloomPages(AirflowPlugin):
    """The application behind the pages, and their entries in the navigation."""

    name = "adloom"
    fastapi_apps: list[Any] = [{"app": app, "url_prefix": "/adloom", "name": "adloom"}]  # noqa: RUF012 required by Airflow
    external_views: list[Any] = [  # noqa: RUF012 required by Airflow
        {
            "name": "Streams",
            "href": "/adloom/streams",
            "url_route": "streams",
            "destination": "nav",
            "nav_top_level": True,
            "icon": "/adloom/static/streams.svg",
        },
        {
            "name": "Data quality",
            "href": "/adloom/quality",
            "url_route": "quality",
            "destination": "nav",
            "nav_top_level": True,
            "icon": "/adloom/static/quality.svg",
        },
    ]
