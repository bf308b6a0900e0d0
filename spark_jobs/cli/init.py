"""``adloom init``: prepares Kafka's topics, the bucket of a lake, and a user for its jobs; or only checks them."""

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from spark_jobs.cli.terminal import terminal
from spark_jobs.config.choices import Role
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import check_store, open_lake

if TYPE_CHECKING:
    from spark_jobs.lake.store.minio_admin import MinioServer
    from spark_jobs.lake.store.objects import Objects
from typing import Annotated, Any

import typer

from spark_jobs.cli.options import ConfigOption, LakeOption

app = typer.Typer()


@app.command(
    epilog="Example:  adloom init --lake s3a://ads/lake --user adloom-jobs   It needs s3.endpoint, and the keys of an "
    "administrator in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. It can be run again.",
)
def init(
    location: LakeOption,
    user: Annotated[
        str | None,
        typer.Option(
            help="Create this user with access to this lake only; its keys go to an AWS profile of the same name.",
            metavar="NAME",
        ),
    ] = None,
    role: Annotated[
        Role,
        typer.Option(
            help="Rights of the user: jobs may change the lake; airflow, for Airflow's tasks, reads it and writes "
            "reports and releases; pages, for its web pages and the exporter, reads no row; analyst may only read gold."
        ),
    ] = Role.JOBS,
    partitions: Annotated[
        int, typer.Option(min=1, help="Partitions of a Kafka topic that has to be created.", metavar="N")
    ] = 1,
    reader: Annotated[
        list[str] | None,
        typer.Option(help="Give this Kafka user the right to read the topics; may be repeated.", metavar="USER"),
    ] = None,
    writer: Annotated[
        list[str] | None,
        typer.Option(help="Give this Kafka user the right to send to the topics; may be repeated.", metavar="USER"),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Create nothing: check that Kafka has the topics and that the bucket can be written, for which the "
            "jobs' keys are enough.",
        ),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Prepare a lake: bucket, versioning, lifecycle rules, policy and user, and the Kafka topics."""
    if check and user:
        raise SettingsError(f"--check creates no user, and --user {user} asks for one; leave out one of the two")
    if check and (reader or writer):
        raise SettingsError("--check gives no rights, and --reader and --writer ask for some; leave out one of the two")
    if check:
        check_servers(location, config=config)
        return
    prepare_lake(
        location,
        user=user,
        role=role,
        partitions=partitions,
        readers=reader or (),
        writers=writer or (),
        config=config,
    )


def prepare_lake(
    location: str,
    *,
    user: str | None,
    role: Role = Role.JOBS,
    partitions: int = 1,
    readers: Sequence[str] = (),
    writers: Sequence[str] = (),
    config: Path | None,
) -> None:
    """Prepares the topics and the store of the lake at ``location`` and prints each step.

    Args:
        location: of the lake.
        user: the user to create in the store, with the rights of ``role``; None for none.
        role: what the user is for.
        partitions: of a new topic.
        readers: Kafka users who may read the topics.
        writers: Kafka users who may send to them.
        config: the settings file.

    Raises:
        SettingsError: the location, a setting or ``user`` is invalid.
        LakeError: a request to the store failed, or the store ignores conditional writes.
        SourceError: a request to Kafka failed.
    """
    console, settings = terminal(), load_settings(config, os.environ)
    if settings.kafka.bootstrap_servers:
        from spark_jobs.ingest.topics import create_topics, grant_topics
        from spark_jobs.spark.gateway import java_gateway

        with java_gateway(settings) as jvm:
            topics = settings.kafka_of_sources
            for line in create_topics(jvm, topics, partitions):
                console.print(line)
            for line in grant_topics(jvm, topics, readers, writers):
                console.print(line)
    lake = open_lake(location, settings.s3)
    if lake.is_local:
        lake.path.mkdir(parents=True, exist_ok=True)
        console.print(f"{lake.shown()}: a folder needs no preparation")
        return
    _prepare_store(console, settings, lake, user, role)


def check_servers(location: str, *, config: Path | None) -> None:
    """Checks what :func:`prepare_lake` would prepare, changes nothing, and prints each step.

    Args:
        location: of the lake.
        config: the settings file.

    Raises:
        SettingsError: the location or a setting is invalid.
        SourceError: Kafka does not answer, refuses the client or lacks a topic.
        LakeError: the store does not answer, refuses the keys, has no such bucket, cannot be written or ignores
            conditional writes.
    """
    console, settings = terminal(), load_settings(config, os.environ)
    if settings.kafka.bootstrap_servers:
        from spark_jobs.ingest.topics import require_topics
        from spark_jobs.spark.gateway import java_gateway

        with java_gateway(settings) as jvm:
            for name, topic in require_topics(jvm, settings.kafka_of_sources).items():
                console.print(f"topic {name}: exists, with {len(topic.partitions)} partitions")
    lake = open_lake(location, settings.s3)
    if lake.is_local:
        console.print(f"{lake.shown()}: a folder needs no preparation")
        return
    check_store(lake)
    console.print(f"{lake.shown()}: can be listed and written, with conditional writes")


def _prepare_store(console: Console, settings: Settings, lake: Lake, user: str | None, role: Role) -> None:
    from spark_jobs.lake.store.bucket import policy_name, policy_of, prepare_bucket
    from spark_jobs.lake.store.conditional_writes import check_conditional_writes
    from spark_jobs.lake.store.minio_admin import MinioServer
    from spark_jobs.lake.store.objects import Objects, credentials

    assert isinstance(lake.files, Objects)  # noqa: S101 what is not local is in an object store
    credentials(settings.s3)
    candidate = MinioServer(settings.s3) if settings.s3.endpoint else None
    server = candidate if candidate and candidate.is_there() else None
    for line in prepare_bucket(lake.files, settings.s3, server):
        console.print(line)
    check_conditional_writes(lake.files)
    console.print("conditional writes: supported")
    policy = policy_of(lake.files, role)
    if server is None:
        console.print(
            f"policy and user: {settings.s3.endpoint or 'Amazon S3'} has no MinIO admin API for these keys; "
            "create a user for the jobs with this policy:"
        )
        console.print_json(json.dumps(policy))
        return
    name = policy_name(lake.files, role)
    _check_policy(lake.files, name, server.policy(name))
    server.set_policy(name, policy)
    console.print(f"policy {name}: set", soft_wrap=True)
    if user:
        for line in (*_add_user(server, user, name), *_leave_earlier_policy(server, lake.files, user, role)):
            console.print(line, soft_wrap=True)
    else:
        console.print(f"user: not requested; --user NAME creates one for the role {role}")


def _check_policy(objects: "Objects", name: str, found: "dict[str, Any] | None") -> None:
    from spark_jobs.lake.store.bucket import foreign_resources

    if found and (foreign := foreign_resources(objects, found)):
        raise LakeError(
            f"MinIO has a policy {name} that gives rights on {', '.join(foreign)}, outside of {objects.root}: "
            "replacing it would take them from whoever uses it; give it another name, or remove it"
        )


def _leave_earlier_policy(server: "MinioServer", objects: "Objects", user: str, role: Role) -> Iterator[str]:
    """Takes the policy of earlier versions from the user: another lake may have one of the same name, or replace it."""
    from spark_jobs.lake.store.bucket import earlier_policy_name, foreign_resources

    earlier = earlier_policy_name(objects, role)
    if not (found := server.policy(earlier)):
        return
    if not foreign_resources(objects, found):
        if server.detach(earlier, user):
            yield f"policy {earlier}: taken from the user; earlier versions gave it"
        return
    yield (
        f"policy {earlier}: is another lake's, whose name is alike; if the user has it and does not need it, take it "
        "away, and run `adloom init` for the other lake, too"
    )


def _add_user(server: "MinioServer", user: str, policy: str) -> Iterator[str]:
    from spark_jobs.lake.store.profiles import add_profile, credentials_file, has_profile, secret_of

    secret = secret_of(user, user)
    if secret is None:
        if has_profile(user):
            raise SettingsError(f"profile {user} in {credentials_file()} has other keys; give another --user")
        if server.has_user(user):
            raise SettingsError(
                f"user {user} exists on the server, but its secret is not in {credentials_file()}: a new secret would "
                "lock out the jobs that use it; copy the profile here, or give another --user"
            )
        secret = secrets.token_urlsafe(30)
        add_profile(user, user, secret)
    server.add_user(user, secret, policy)
    yield f"user {user}: has the policy; its keys are in {credentials_file()}"
    yield f"use them with the setting s3.profile, as in ADLOOM_S3__PROFILE={user}"
