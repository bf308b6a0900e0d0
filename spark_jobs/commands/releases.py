"""Commands on the releases of a lake, and the one that runs them."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption

releases_app = typer.Typer(
    no_args_is_help=True,
    help="Put builds of this package into a lake and choose which one each job runs.",
)
JobArgument = Annotated[str, typer.Argument(help="deduplicate or attribute.", metavar="JOB")]


@releases_app.command("build", epilog="Example:  adloom releases build --lake s3a://ads/lake")
def build_release(
    lake: LakeOption,
    checkout: Annotated[Path, typer.Option(help="The checkout to build.", metavar="DIR")] = Path(),
    config: ConfigOption = None,
) -> None:
    """Build the package of a checkout and put it into the lake. The same files always give the same version."""
    from spark_jobs.console.releases import build

    build(checkout, lake, config)


@releases_app.command("list")
def list_releases(lake: LakeOption, config: ConfigOption = None) -> None:
    """List them, the newest first, with the jobs that run them."""
    from spark_jobs.console.releases import list_all

    list_all(lake, config)


@releases_app.command("deploy", epilog="Example:  adloom releases deploy attribute 0.1.0+3f2a90c1d4e5 --lake lake")
def deploy(
    job: JobArgument,
    version: Annotated[str, typer.Argument(help="As `adloom releases list` shows it.", metavar="VERSION")],
    lake: LakeOption,
    config: ConfigOption = None,
) -> None:
    """Have a job run a release from its next start on."""
    from spark_jobs.console.releases import choose

    choose(job, version, lake, config)


@releases_app.command("rollback")
def rollback(job: JobArgument, lake: LakeOption, config: ConfigOption = None) -> None:
    """Have a job run the release before the present one, from its next start on."""
    from spark_jobs.console.releases import choose

    choose(job, None, lake, config)
