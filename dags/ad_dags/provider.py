"""adloom's description for the entry point ``apache_airflow_provider``: the connection type and its form.

Airflow calls this while it starts, so nothing of Airflow is imported here.
"""

from typing import Any

_TEXT = ["string", "null"]


def get_provider_info() -> dict[str, Any]:
    """The description of the provider; Airflow 3.2 and later draw the form from it."""
    return {
        "package-name": "adloom",
        "name": "adloom",
        "description": "Streaming joins of ad impressions with clicks: their lake, settings and drivers.",
        "connection-types": [
            {
                "connection-type": "adloom",
                "hook-class-name": "ad_dags.connection.hook.AdloomHook",
                "hook-name": "adloom",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "port"],
                    "relabeling": {"host": "Lake", "login": "Access key", "password": "Secret key"},
                    "placeholders": {
                        "host": "s3a://bucket/prefix, or a folder",
                        "login": "of the object store; empty: that of the environment",
                    },
                },
                "conn-fields": {
                    "session_token": _field("Session token", "Of keys that expire.", is_secret=True),
                    "s3__endpoint": _field("Object store", "Its http(s) address; empty: Amazon S3."),
                    "supervisor_address": _field("Supervisor", "host:port of the supervisord that runs the drivers."),
                    "supervisor_password": _field("Supervisor's password", "Its user is adloom.", is_secret=True),
                    "cluster": _field("Cluster", "yarn or k8s://https://host:port, instead of a supervisor."),
                    "config": _field("Settings file", "TOML file with the settings of the jobs."),
                    "jobs": _field("Jobs", "The jobs that are deployed together, separated by commas; empty: all."),
                    "source": _field("Source", "Folder of files that deduplicate watches; empty: Kafka."),
                    "backup": _field("Backup", "Where back_up_lake copies the lake to; empty: nowhere."),
                    "kafka__bootstrap_servers": _field("Kafka", "Its brokers, as in host:9092."),
                    "kafka__username": _field("Kafka user", "Empty: no login."),
                    "kafka__password": _field("Kafka password", "That of the user.", is_secret=True),
                },
            }
        ],
    }


def _field(label: str, description: str, *, is_secret: bool = False) -> dict[str, Any]:
    schema = {"type": _TEXT, "format": "password"} if is_secret else {"type": _TEXT}
    return {"label": label, "description": description, "schema": schema}
