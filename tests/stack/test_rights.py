"""Who may do what with which key of a lake in MinIO: each right is tried, and each that must not be there."""

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from ad_dags.connection.lake_connection import connect
from ad_dags.connection.lakes import LakeRef
from ad_dags.drivers.triggers.new_versions import new_versions
from ad_dags.pages.reports import read_page
from ad_dags.pages.streams import streams_page
from spark_jobs.config.choices import Role
from spark_jobs.config.sections import S3Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS
from spark_jobs.lake.layout import commit_key
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.bucket import earlier_policy_name, foreign_resources, policy_name, policy_of
from spark_jobs.lake.store.minio_admin import MinioServer
from spark_jobs.lake.store.objects import Objects
from spark_jobs.operations.exporter.gold_metrics import GoldMetrics
from spark_jobs.operations.exporter.lake_metrics import LakeMetrics
from spark_jobs.operations.release import Deployment
from spark_jobs.operations.releases import write_deployment
from spark_jobs.places import FEED
from spark_jobs.streams.desired_state import RunState, set_desired
from tests.stack.flow import adloom
from tests.stack.minio import Minio
from tests.support.drivers import ADLOOM

pytestmark = pytest.mark.stack

_ALIKE = (
    (("s3a://rights/eu/lake", Role.JOBS), ("s3a://rights-eu/lake", Role.JOBS)),
    (("s3a://rights/eu/lake", Role.JOBS), ("s3a://rights/eu-lake", Role.JOBS)),
    (("s3a://rights/lake", Role.ANALYST), ("s3a://rights/lake-analyst", Role.JOBS)),
)
"""Lakes and roles whose policies had the same name."""
_CONTENT = {
    "bronze/events/part-0.parquet": "raw records",
    "silver/events/part-0.parquet": "ip and user_agent",
    "gold/sessions/part-0.parquet": "users",
    "gold/sessions/_delta_log/00000000000000000000.json": "a commit",
    "_reports/failing_rows/sessions/part-0.parquet": "rows",
    "_reports/index.html": "a page",
    "_reports/history.json": "totals",
    "_progress/measure/campaign_stats.json": "progress",
    "_releases/0.1.0/release.json": "a release",
    "_releases/deployed/measure.json": "a deployment",
    "_feeds/credit.json": "a feed",
}
_OF_PAGES = {
    *("gold/sessions/_delta_log/00000000000000000000.json", "_reports/index.html", "_reports/history.json"),
    *("_progress/measure/campaign_stats.json", "_releases/deployed/measure.json", "_feeds/credit.json"),
}
_READABLE = {
    Role.JOBS: set(_CONTENT),
    Role.AIRFLOW: set(_CONTENT),
    Role.PAGES: _OF_PAGES,
    Role.ANALYST: {key for key in _CONTENT if key.startswith("gold/")},
}
_WRITABLE = {
    Role.JOBS: set(_CONTENT),
    Role.AIRFLOW: {key for key in _CONTENT if key.startswith(("_releases/", "_reports/", "_progress/"))},
    Role.PAGES: {"_progress/measure/campaign_stats.json"},
    Role.ANALYST: set[str](),
}


def _objects(minio: Minio, location: str) -> Objects:
    files = open_lake(location, S3Settings(endpoint=minio.endpoint)).files
    assert isinstance(files, Objects)
    return files


def _client(minio: Minio, user: str) -> Any:
    return boto3.Session(profile_name=user).client("s3", endpoint_url=minio.endpoint)


def _may(act: Callable[[], object]) -> bool:
    try:
        act()
    except ClientError as error:
        if error.response["Error"]["Code"] != "AccessDenied":
            raise
        return False
    return True


def _user(location: str, role: Role, name: str) -> str:
    adloom("init", "--lake", location, "--user", name, "--role", role)
    return name


@pytest.mark.parametrize("role", Role)
def test_a_role_may_do_what_it_is_for_and_nothing_else(minio: Minio, role: Role) -> None:
    objects = _objects(minio, "s3a://stack/lakes/rights")
    client = _client(minio, _user(objects.root, role, f"rights-{role}"))
    for key, text in _CONTENT.items():
        objects.write(key, text.encode())

    def read(name: str) -> bool:
        return _may(lambda: client.get_object(Bucket=objects.bucket, Key=name))

    def write(name: str) -> bool:
        return _may(lambda: client.put_object(Bucket=objects.bucket, Key=name, Body=b"mine"))

    assert {key for key in _CONTENT if read(objects.name(key))} == _READABLE[role]
    assert {key for key in _CONTENT if write(objects.name(key))} == _WRITABLE[role]
    objects.client.put_object(Bucket=objects.bucket, Key="lakes/rights-not/bronze/a", Body=b"another lake's")
    assert not read("lakes/rights-not/bronze/a")
    assert not write("lakes/rights-not/bronze/a")


@pytest.mark.parametrize(("first", "second"), _ALIKE)
def test_a_lake_with_a_name_like_anothers_leaves_its_keys_their_rights_and_gives_them_no_more(
    minio: Minio, first: tuple[str, Role], second: tuple[str, Role]
) -> None:
    (location, role), (other, _) = first, second
    here, there = _objects(minio, location), _objects(minio, other)
    assert earlier_policy_name(here, role) == earlier_policy_name(there, second[1]), "these two did collide"
    user = _user(location, role, f"alike-{policy_name(here, role)[-8:]}")
    _user(other, second[1], f"alike-{policy_name(there, second[1])[-8:]}")
    here.write("gold/a", b"own")
    there.write("gold/a", b"of others")
    client = _client(minio, user)
    assert _may(lambda: client.get_object(Bucket=here.bucket, Key=here.name("gold/a")))
    assert not _may(lambda: client.get_object(Bucket=there.bucket, Key=there.name("gold/a")))
    assert not _may(lambda: client.put_object(Bucket=there.bucket, Key=there.name("gold/a"), Body=b"mine"))


def test_a_policy_of_that_name_with_rights_elsewhere_is_not_replaced(minio: Minio) -> None:
    here, there = _objects(minio, "s3a://stack/lakes/edited"), _objects(minio, "s3a://stack/lakes/elsewhere")
    server = MinioServer(S3Settings(endpoint=minio.endpoint))
    name = policy_name(here, Role.JOBS)
    server.set_policy(name, policy_of(there, Role.JOBS))
    done = subprocess.run([*ADLOOM, "init", "--lake", here.root], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    shown = " ".join(done.stderr.split())
    assert f"MinIO has a policy {name} that gives rights on arn:aws:s3:::stack/lakes/elsewhere/*" in shown
    kept = server.policy(name)
    assert kept
    assert foreign_resources(there, kept) == [], "it is as it was"


def test_a_user_of_earlier_versions_keeps_only_the_rights_of_the_role(minio: Minio) -> None:
    here = _objects(minio, "s3a://stack/lakes/upgraded")
    server, user = MinioServer(S3Settings(endpoint=minio.endpoint)), "upgraded"
    _user(here.root, Role.AIRFLOW, user)
    earlier = earlier_policy_name(here, Role.AIRFLOW)
    server.set_policy(earlier, policy_of(here, Role.JOBS))
    server.add_user(user, boto3.Session(profile_name=user).get_credentials().secret_key, earlier)
    client = _client(minio, user)
    write = {"Bucket": here.bucket, "Key": here.name("bronze/a"), "Body": b"mine"}
    assert _may(lambda: client.put_object(**write))
    _user(here.root, Role.AIRFLOW, user)
    assert not _may(lambda: client.put_object(**write))


def test_the_rules_of_a_lake_at_the_root_and_of_one_in_the_folder_root_stand_side_by_side(minio: Minio) -> None:
    lakes = ("s3a://rights-root", "s3a://rights-root/root")
    client = _objects(minio, lakes[0]).client

    def rules() -> dict[str, str]:
        found = client.get_bucket_lifecycle_configuration(Bucket="rights-root")["Rules"]
        return {rule["ID"]: rule["Filter"]["Prefix"] for rule in found}

    adloom("init", "--lake", lakes[0])
    at_root = rules()
    adloom("init", "--lake", lakes[1])
    assert rules().items() > at_root.items()
    assert sorted(rules().values()) == ["", "_progress/", "root/", "root/_progress/"]
    earlier = {"ID": "adloom root lake", "Status": "Enabled", "Filter": {"Prefix": "root/"}}
    earlier["NoncurrentVersionExpiration"] = {"NoncurrentDays": 7}
    found = client.get_bucket_lifecycle_configuration(Bucket="rights-root")["Rules"]
    client.put_bucket_lifecycle_configuration(Bucket="rights-root", LifecycleConfiguration={"Rules": [*found, earlier]})
    expected = rules().keys() - {earlier["ID"]}
    adloom("init", "--lake", lakes[1])
    assert rules().keys() == expected, "a rule of an earlier version goes"


def test_what_the_pages_and_the_exporter_do_works_with_the_key_of_pages(minio: Minio) -> None:
    """Each of their requests is made: where one needs more rights, it says so."""

    lake = open_lake("s3a://stack/lakes/looked-at", S3Settings(endpoint=minio.endpoint))
    now = datetime.now(UTC)
    partition = {"event_date": f"{now:%Y-%m-%d}"}
    added = {"path": "part-0.parquet", "partitionValues": partition, "size": 1, "stats": json.dumps({"numRecords": 7})}
    window = {"window_start": "2026-03-01T12:00:00+00:00", "window_end": "2026-03-01T12:10:00+00:00"}
    figures = {"campaign_id": "c", "impressions": 5, "clicks": 1, "cost_micros": 9}
    for key, text in {
        commit_key(SESSIONS, 0): json.dumps({"add": added}),
        commit_key(ATTRIBUTIONS, 0): json.dumps({"commitInfo": {}}),
        FEED: json.dumps({"windows": [window | figures]}),
        "_reports/index.html": "a page",
        "_reports/history.json": json.dumps(
            {"validations": [{"at": now.isoformat(), "passed": 1, "warnings": 0, "critical": 0}]}
        ),
        "_reports/validated.json": json.dumps({"sessions": 0}),
    }.items():
        lake.files.write(key, text.encode())
    write_deployment(lake, Deployment(job="measure", version="0.1.0", deployed_at=now))
    user = _user(lake.root, Role.PAGES, "looked-at-pages")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_ACCESS", "AWS_SECRET"))}
    supervisor = {"ADLOOM_SUPERVISOR_ADDRESS": "127.0.0.1:1", "ADLOOM_SUPERVISOR_PASSWORD": "none"}
    given = {**kept, **supervisor, "ADLOOM_S3__PROFILE": user, "ADLOOM_LAKE": lake.root}
    connection = connect(LakeRef(), given)
    page = streams_page(connection, LakeRef(), ["deduplicate", "attribute", "measure"], now, span=timedelta(hours=1))
    assert [job.problems for job in page.jobs] == [[]] * 3
    assert page.jobs[2].deployment is not None
    assert read_page(connection.lake, "index.html")
    assert read_page(connection.lake, "overview.html") is None, "a page that is missing is not refused"
    assert new_versions(connection.lake, {}) == {"attributions": 0}
    set_desired(connection.lake, "measure", RunState.STOPPED, "the triggerer says so", now)
    gold = GoldMetrics(connection.lake)
    gold.refresh(now)
    assert {"adloom_sessions_today", "adloom_campaign_impressions"} <= {one.name for one in gold.collect()}
    found = {one.name: one.samples[0].value for one in LakeMetrics(connection.lake).collect()}
    assert found["adloom_lake_readable"] == 1
    assert "adloom_validation_time_seconds" in found
