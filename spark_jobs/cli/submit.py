"""``adloom submit``: runs a job's driver on a cluster."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.cli.driver import check_job, options_of_driver
from spark_jobs.cli.options import ConfigOption, JobArgument, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.errors import EnvironmentMissingError, SettingsError
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.releases import settings_of_job
from spark_jobs.spark.conf import spark_conf
from spark_jobs.spark.jars.ready import jars_folder, ready_jars
from spark_jobs.spark.java import Lifetime
from spark_jobs.spark.names import application_name
from spark_jobs.streams.desired_state import clear_stop_request

app = typer.Typer()


_DRIVER = Path(__file__).parents[1] / "submit" / "adloom_driver.py"
_TIMEOUT_S = 300


@app.command(
    epilog="Example:  adloom submit attribute --lake s3a://ads/lake --master k8s://https://10.0.0.1:6443 "
    "--properties kubernetes.conf   The file names image, namespace and service account; keys come from the cluster.",
)
def submit(
    job: JobArgument,
    location: LakeOption,
    master: Annotated[str, typer.Option(help="yarn, or k8s://https://host:port.", metavar="URL")],
    source: Annotated[str | None, typer.Option(help="As for `adloom job deduplicate`.", metavar="DIR")] = None,
    properties: Annotated[
        Path | None,
        typer.Option(help="File of Spark properties that take precedence over adloom's own.", metavar="FILE"),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Submit the driver of a job to a cluster (Kubernetes or YARN), which runs it like `adloom driver`.

    Memory, cores and the like come from the settings of the release deployed for the job, if it holds some.
    """
    check_job(job)
    if master != "yarn" and not master.startswith("k8s://"):
        raise SettingsError(f"--master {master!r} cannot run drivers; give yarn or k8s://https://host:port")
    settings = load_settings(config, os.environ)
    lake = open_lake(location, settings.s3)
    if own := settings_of_job(lake, job):
        settings = load_settings(own, os.environ)
    name = application_name(lake.root, job)
    ready_jars()
    conf = dict(_conf(settings, master, name, is_local=lake.is_local, own=_keys(properties)))
    command = [str(_spark() / "bin" / "spark-submit"), "--master", master, "--deploy-mode", "cluster", "--name", name]
    command += ["--properties-file", str(properties)] if properties else []
    command += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    file = f"local://{_DRIVER}" if master.startswith("k8s://") else str(_DRIVER)
    command += [file, "driver", job, *options_of_driver(job, location, source, config)]
    environment = {**os.environ, "SPARK_HOME": str(_spark())}
    # Made to an earlier driver. The new one heeds whatever comes from now on, before it is running, too.
    clear_stop_request(lake, job)
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S
    )
    if done.returncode:
        why = _reason(done.stdout + done.stderr)
        raise EnvironmentMissingError(f"spark-submit to {master} ended with {done.returncode}: {why}")
    terminal().print(f"{job}: {master} has accepted {name}", soft_wrap=True)


def _conf(settings: Settings, master: str, name: str, *, is_local: bool, own: set[str]) -> Iterator[tuple[str, str]]:
    """Spark's configuration of the driver. It holds no secrets: the cluster provides the keys."""
    is_kubernetes = master.startswith("k8s://")
    jars = sorted(jars_folder().glob("*.jar"))
    submitted = {
        **spark_conf(settings, is_local=is_local, lifetime=Lifetime.SERVICE),
        # An image has them at the same path; YARN gets them uploaded.
        "spark.jars": ",".join(f"local://{jar}" if is_kubernetes else jar.as_uri() for jar in jars),
        "spark.pyspark.python": sys.executable,
        "spark.yarn.submit.waitAppCompletion": "false",
        # The supervising task restarts it and counts the restarts.
        "spark.yarn.maxAppAttempts": "1",
        "spark.yarn.tags": name,
        "spark.kubernetes.submission.waitAppCompletion": "false",
        # The name is unique, so Kubernetes itself refuses a second driver.
        "spark.kubernetes.driver.pod.name": name,
        "spark.kubernetes.driver.label.adloom-job": name,
    }
    # Settings of spark-submit itself, and paths of this machine.
    for key in ("spark.driver.extraClassPath", "spark.hadoop.fs.file.impl"):
        submitted.pop(key, None)
    other = "spark.yarn." if is_kubernetes else "spark.kubernetes."
    yield from ((key, value) for key, value in submitted.items() if not key.startswith(other) and key not in own)


def _keys(properties: Path | None) -> set[str]:
    """The keys set in a file of Spark properties."""
    if properties is None:
        return set()
    try:
        lines = properties.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError(f"--properties {properties} cannot be read: {error.strerror}") from error
    return {line.replace("=", " ").split()[0] for line in map(str.strip, lines) if line and not line.startswith("#")}


def _spark() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def _reason(output: str) -> str:
    """The line of spark-submit's output that says why: the root cause of an exception, or else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    thrown = [line for line in lines if line.startswith("Exception in thread")]
    return (causes[-1:] or thrown[:1] or lines[-1:] or ["it printed nothing"])[0]
