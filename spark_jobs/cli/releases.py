"""``adloom releases``: builds with their settings, and which one each job runs."""

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from spark_jobs.cli.driver import check_job
from spark_jobs.cli.options import ConfigOption, JobArgument, LakeOption
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.differences import SettingChange, setting_changes
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.releases import deploy as deploy_release
from spark_jobs.operations.releases import (
    list_releases,
    publish,
    read_deployment,
    read_release,
    release_before,
    settings_of,
    sign_release,
)
from spark_jobs.queries.registry import QUERIES_OF_JOB

app = typer.Typer(
    name="releases",
    no_args_is_help=True,
    help="Store builds of this package, with their settings, in a lake and choose which one each job runs.",
)
_VersionArgument = Annotated[str, typer.Argument(help="A version from `adloom releases list`.", metavar="VERSION")]


@app.command("build", epilog="Example:  adloom releases build --lake s3a://ads/lake")
def build(
    location: LakeOption,
    checkout: Annotated[Path, typer.Option(help="Checkout to build.", metavar="DIR")] = Path(),
    config: ConfigOption = None,
) -> None:
    """Build the package from a checkout and store it in the lake. The same files always give the same version.

    The settings file is a part of the release: its drivers start with it. A file that holds a secret is refused.
    """
    from spark_jobs.operations.build_wheel import build_wheel

    console, lake = terminal(), open_lake(location, load_settings(config, os.environ).s3)
    with tempfile.TemporaryDirectory() as folder, console.status("building …"):
        wheel, version = build_wheel(checkout, Path(folder), config)
        release = publish(lake, wheel, version, datetime.now(UTC))
    signed = "signed" if release.signature else "not signed"
    console.print(f"{release.version} is in {lake.shown()}, {signed}, SHA-256 {release.sha256}", soft_wrap=True)


@app.command("key", epilog="Example:  adloom releases key ~/.config/adloom/release.pem")
def create(
    file: Annotated[Path, typer.Argument(help="The new file for the private key.", metavar="FILE")],
) -> None:
    """Create a pair of keys for releases, and print the public one. Drivers that have it run only what is signed."""
    from spark_jobs.operations.signatures import PRIVATE_KEY, PUBLIC_KEY, create_key

    public = create_key(file)
    console = terminal(stderr=True)
    console.print(f"the private key is in {file}; where releases are built, set {PRIVATE_KEY}={file}", soft_wrap=True)
    console.print(f"where drivers run, set {PUBLIC_KEY} to the public key:", soft_wrap=True)
    terminal().print(public)


@app.command("sign", epilog="Example:  adloom releases sign --all --lake s3a://ads/lake")
def sign(
    location: LakeOption,
    versions: Annotated[
        list[str] | None, typer.Argument(help="Versions from `adloom releases list`.", metavar="VERSION…")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Sign every release in the lake.")] = False,
    config: ConfigOption = None,
) -> None:
    """Sign releases that you trust with the key of ADLOOM_RELEASE_KEY; `releases build` signs by itself."""
    console, lake = terminal(), open_lake(location, load_settings(config, os.environ).s3)
    if bool(versions) == every:
        raise SettingsError("name the releases to sign, or give --all")
    for version in versions or [release.version for release in list_releases(lake)]:
        try:
            console.print(f"{sign_release(lake, version).version}: signed")
        except LakeError as error:
            if not every:
                raise
            # It cannot be run either way, and the others are needed.
            console.print(f"{version}: not signed: {error}", soft_wrap=True)


@app.command("list", epilog="Example:  adloom releases list --lake s3a://ads/lake")
def list_all(location: LakeOption, config: ConfigOption = None) -> None:
    """List the releases, newest first, with the jobs that run them."""
    console, lake = terminal(), open_lake(location, load_settings(config, os.environ).s3)
    deployed = [found for job in QUERIES_OF_JOB if (found := read_deployment(lake, job))]
    table = Table(box=SIMPLE_HEAD, title=f"{lake.shown()}: releases", title_justify="left")
    for heading in ("release", "built", "SHA-256"):
        table.add_column(heading, no_wrap=True)
    table.add_column("deployed for", overflow="fold")
    for release in list_releases(lake):
        jobs = ", ".join(found.job for found in deployed if found.version == release.version)
        table.add_row(release.version, utc(release.built_at), f"{release.sha256[:12]}…", jobs)
    console.print(table)


@app.command("show", epilog="Example:  adloom releases show 0.1.0+3f2a90c1d4e5s1b2c3d4e --lake lake")
def show(version: _VersionArgument, location: LakeOption, config: ConfigOption = None) -> None:
    """Show a release: when it was built, its SHA-256, and its settings that differ from the defaults."""
    console, lake = terminal(), open_lake(location, load_settings(config, os.environ).s3)
    release, settings = read_release(lake, version), settings_of(lake, version)
    console.print(f"{version}: built {utc(release.built_at)}, SHA-256 {release.sha256}", soft_wrap=True)
    if settings is None:
        console.print("It holds no settings: its drivers use those that they are started with.", soft_wrap=True)
        return
    _print_changes(f"{version}: settings", "default", setting_changes(None, settings), "all settings are the defaults")


@app.command(
    "diff",
    epilog="Example:  adloom releases diff 0.1.0+3f2a90c1d4e5s1b2c3d4e 0.1.0+3f2a90c1d4e5s5f6a7b8c --lake lake",
)
def diff(
    before: Annotated[str, typer.Argument(help="The earlier version.", metavar="BEFORE")],
    now: Annotated[str, typer.Argument(help="The later version.", metavar="NOW")],
    location: LakeOption,
    config: ConfigOption = None,
) -> None:
    """Show the settings that differ between two releases. One without settings counts as having those of --config."""
    lake = open_lake(location, load_settings(config, os.environ).s3)
    old, new = (settings_of(lake, version) or config for version in (before, now))
    _print_changes(f"{before} and {now}: settings", "was", setting_changes(old, new), "the settings are the same")


@app.command("deploy", epilog="Example:  adloom releases deploy attribute 0.1.0+3f2a90c1d4e5 --lake lake")
def deploy(
    job: JobArgument,
    version: _VersionArgument,
    location: LakeOption,
    config: ConfigOption = None,
) -> None:
    """Choose the release, code and settings, that a job runs from its next start on."""
    _choose(job, version, location, config)


@app.command("rollback", epilog="Example:  adloom releases rollback attribute --lake s3a://ads/lake")
def rollback(job: JobArgument, location: LakeOption, config: ConfigOption = None) -> None:
    """Return a job to the release, code and settings, that it ran before, from its next start on."""
    _choose(job, None, location, config)


def _print_changes(title: str, first: str, changes: list[SettingChange], none: str) -> None:
    console = terminal()
    if not changes:
        console.print(none)
        return
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for heading in ("setting", first, "is"):
        table.add_column(heading, overflow="fold")
    for change in changes:
        table.add_row(change.setting, change.before, change.now)
    console.print(table)


def _choose(job: str, version: str | None, location: str, config: Path | None) -> None:
    """Deploys ``version`` for ``job`` from its next start; None: the previous release.

    Raises:
        LakeError: there is no such release, or no previous one.
    """
    console, lake = terminal(), open_lake(location, load_settings(config, os.environ).s3)
    check_job(job)
    done = deploy_release(lake, job, version or release_before(lake, job), datetime.now(UTC))
    before = f" (before: {done.previous})" if done.previous else ""
    console.print(f"{job} will run {done.version} from its next start{before}", soft_wrap=True)
