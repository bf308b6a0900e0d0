"""The Airflow connection that describes a lake, as the environment variables that it stands for.

Its type is ``adloom``: host is the lake, login and password are the keys of the object store, and each extra field is
the variable of the same name: ``supervisor_address`` is ``ADLOOM_SUPERVISOR_ADDRESS``, ``kafka__username`` is
``ADLOOM_KAFKA__USERNAME``. But ``session_token`` belongs to the keys, as ``AWS_SESSION_TOKEN``.
"""

import json
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError
from airflow.sdk.log import mask_secret

from spark_jobs.config.settings import ENV_PREFIX
from spark_jobs.errors import SettingsError

CONNECTION = "ADLOOM_CONNECTION"
CONNECTION_TYPE = "adloom"
ACCESS_KEY, SECRET_KEY, SESSION_TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_TOKEN_FIELD = f"{ENV_PREFIX}SESSION_TOKEN"
FIELDS = (
    "config",
    "session_token",
    "supervisor_address",
    "supervisor_password",
    "cluster",
    "source",
    "jobs",
    "yarn_address",
    "kubernetes_namespace",
    "kubernetes_account",
    "submit_properties",
    "maintenance_profile",
    "backup",
)
"""The extra fields, besides those of settings, which have two underscores."""


def variables_of_connection(name: str) -> dict[str, str]:
    """The environment variables that the connection ``name`` stands for; they precede those of the process.

    Airflow's secrets backends are asked for it: in tasks and triggers by way of Airflow's API for tasks, in the API
    server directly. That may take a while, so call it in a thread where an event loop runs.

    Raises:
        SettingsError: there is no such connection, it is of another type, or one of its fields is wrong.
    """
    try:
        found = BaseHook.get_connection(name)
    except (AirflowException, AirflowRuntimeError) as error:
        raise SettingsError(
            f"{CONNECTION} names the connection {name!r}, which no secrets backend of Airflow has ({error}); create "
            f"it, as in `airflow connections add {name} --conn-type {CONNECTION_TYPE} --conn-host LAKE`"
        ) from error
    if found.conn_type != CONNECTION_TYPE:
        raise SettingsError(f"connection {name!r} has the type {found.conn_type!r}; create it as {CONNECTION_TYPE!r}")
    variables = {_variable(name, key): _text(name, key, value) for key, value in _extra(name, found.extra).items()}
    if found.host:
        variables["ADLOOM_LAKE"] = found.host
    return {**variables, **_keys(name, found.login, found.password, variables.pop(_TOKEN_FIELD, ""))}


def _keys(name: str, login: str | None, password: str | None, token: str) -> dict[str, str]:
    if bool(login) != bool(password):
        there, missing = ("login", "password") if login else ("password", "login")
        raise SettingsError(
            f"connection {name!r} has a {there} but no {missing}; they are access key and secret key of the object "
            "store, so set both, or none"
        )
    if not login or not password:
        if token:
            raise SettingsError(f"connection {name!r} has a session_token but no login and password")
        return {}
    # What the process has for other keys must not be used with these.
    return {ACCESS_KEY: login, SECRET_KEY: password, SESSION_TOKEN: token, "ADLOOM_S3__PROFILE": ""}


def _extra(name: str, extra: str | None) -> dict[str, Any]:
    try:
        fields = json.loads(extra or "{}")
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise SettingsError(f'connection {name!r}: extra is not a JSON object; write it as {{"source": "/a/folder"}}')
    mask_secret(fields)
    # The form stores fields that were left empty.
    return {key: value for key, value in fields.items() if value not in (None, "")}


def _variable(name: str, key: str) -> str:
    if key not in FIELDS and "__" not in key:
        raise SettingsError(
            f"connection {name!r}: there is no extra field {key!r}; there are {', '.join(FIELDS)}, and one for each "
            "setting, as in s3__endpoint"
        )
    return f"{ENV_PREFIX}{key.upper()}"


def _text(name: str, key: str, value: Any) -> str:
    if not isinstance(value, str | int | float):
        # The value may be a secret.
        raise SettingsError(
            f"connection {name!r}: extra field {key!r} is a {type(value).__name__}; write it as a string"
        )
    return str(value).lower() if isinstance(value, bool) else str(value)
