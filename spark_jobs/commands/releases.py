"""Commands on the releases of a lake."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption
from spark_jobs.contracts.jobs import JOB_NAMES

releases_app = typer.Typer(
    no_args_is_help=True,
    help="Store builds of this package, with their settings, in a lake and choose which one each job runs.",
)
_VersionArgument = Annotated[str, typer.Argument(help="A version from `adloom releases list`.", metavar="VERSION")]
JobArgument = Annotated[str, typer.Argument(help=f"One of {', '.join(JOB_NAMES)}.", metavar="JOB")]


@releases_app.command("build", epilog="Example:  adloom releases build --lake s3a://ads/lake")
def build_release(
    lake: LakeOption,
    checkout: Annotated[Path, typer.Option(help="Checkout to build.", metavar="DIR")] = Path(),
    config: ConfigOption = None,
) -> None:
    """Build the package from a checkout and store it in the lake. The same files always give the same version.

    The settings file is a part of the release: its drivers start with it. A file that holds a secret is refused.
    """
    from spark_jobs.console.releases import build

    build(checkout, lake, config)


@releases_app.command("list", epilog="Example:  adloom releases list --lake s3a://ads/lake")
def list_releases(lake: LakeOption, config: ConfigOption = None) -> None:
    """List the releases, newest first, with the jobs that run them."""
    from spark_jobs.console.releases import list_all

    list_all(lake, config)


@releases_app.command("show", epilog="Example:  adloom releases show 0.1.0+3f2a90c1d4e5s1b2c3d4e --lake lake")
def show_release(version: _VersionArgument, lake: LakeOption, config: ConfigOption = None) -> None:
    """Show a release: when it was built, its SHA-256, and its settings that differ from the defaults."""
    from spark_jobs.console.releases import show

    show(version, lake, config)


@releases_app.command(
    "diff",
    epilog="Example:  adloom releases diff 0.1.0+3f2a90c1d4e5s1b2c3d4e 0.1.0+3f2a90c1d4e5s5f6a7b8c --lake lake",
)
def diff_releases(
    before: Annotated[str, typer.Argument(help="The earlier version.", metavar="BEFORE")],
    now: Annotated[str, typer.Argument(help="The later version.", metavar="NOW")],
    lake: LakeOption,
    config: ConfigOption = None,
) -> None:
    """Show the settings that differ between two releases. One without settings counts as having those of --config."""
    from spark_jobs.console.releases import show_difference

    show_difference(before, now, lake, config)


@releases_app.command("deploy", epilog="Example:  adloom releases deploy attribute 0.1.0+3f2a90c1d4e5 --lake lake")
def deploy(
    job: JobArgument,
    version: _VersionArgument,
    lake: LakeOption,
    config: ConfigOption = None,
) -> None:
    """Choose the release, code and settings, that a job runs from its next start on."""
    from spark_jobs.console.releases import choose

    choose(job, version, lake, config)


@releases_app.command("rollback", epilog="Example:  adloom releases rollback attribute --lake s3a://ads/lake")
def rollback(job: JobArgument, lake: LakeOption, config: ConfigOption = None) -> None:
    """Return a job to the release, code and settings, that it ran before, from its next start on."""
    from spark_jobs.console.releases import choose

    choose(job, None, lake, config)
