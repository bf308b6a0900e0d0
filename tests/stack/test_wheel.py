"""What `make release` makes: the same bytes each time, and an adloom that runs where there is no checkout."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.release import release
from infra.uv import uv
from spark_jobs.places import CHECKPOINTS
from spark_jobs.spark.jars.cache import CACHE
from spark_jobs.spark.jars.fetch import fetch
from spark_jobs.spark.jars.lock import digest, read_lock
from tests.support.dag_names import DAG_NAMES

pytestmark = pytest.mark.stack

_ROOT = Path(__file__).parents[2]
_JARS = _ROOT / "spark_jobs" / "spark" / "jars"
_GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")
_LONGEST_S = 400


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as it is, changes included, as the only commit of another one."""
    copy = tmp_path_factory.mktemp("release") / "checkout"
    files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(files, cwd=_ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (_ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(_ROOT / name, copy / name)
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*_GIT, *command], cwd=copy, check=True)
    return copy


@pytest.fixture(scope="module")
def released(checkout: Path) -> Path:
    folder = checkout / "build" / "release"
    release(checkout, folder)
    return folder


def _environment(checkout: Path, released: Path, folder: Path, extra: str) -> Path:
    """The Python of an environment with the wheel and the locked packages of its ``extra``, and nothing else."""
    # PySpark is large: links to uv's cache, in which `make setup` has put it.
    packages = ["--frozen", "--no-default-groups", "--extra", extra, "--no-install-project", "--link-mode", "symlink"]
    sync = [uv(), "sync", "--quiet", *packages, "--python", sys.executable]
    subprocess.run(sync, cwd=checkout, env={**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder)}, check=True)
    (wheel,) = released.glob("*.whl")
    pip = [uv(), "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, str(wheel)], check=True)
    return folder / "bin" / "python"


def test_a_release_made_again_elsewhere_has_the_same_bytes(checkout: Path, released: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", str(checkout), str(tmp_path / "clone")], check=True)
    (tmp_path / "clone" / "spark_jobs" / "__pycache__").mkdir()
    (tmp_path / "clone" / "spark_jobs" / "__pycache__" / "left.pyc").touch()
    release(tmp_path / "clone", tmp_path / "again")
    sums = (released / "SHA256SUMS").read_text()
    assert sums == (tmp_path / "again" / "SHA256SUMS").read_text()
    assert {line.split()[1]: line.split()[0] for line in sums.splitlines()} == {
        file.name: digest(file) for file in released.iterdir() if file.name != "SHA256SUMS"
    }
    assert len(sums.splitlines()) == 4


def test_the_bill_of_materials_lists_all_jars_and_what_the_requirements_list(released: Path) -> None:
    (bill,), (requirements,) = released.glob("*.cdx.json"), released.glob("*-requirements.txt")
    components = json.loads(bill.read_text())["components"]
    hashes = {one["purl"]: one["hashes"][0]["content"] for one in components if one["purl"].startswith("pkg:maven/")}
    assert sorted(hashes.values()) == sorted(jar.sha256 for jar in read_lock(_JARS))
    delta = next(jar for jar in read_lock(_JARS) if jar.artifact.startswith("delta-spark_"))
    assert hashes[f"pkg:maven/io.delta/{delta.artifact}@{delta.version}"] == delta.sha256
    python = {f"{one['name']}=={one['version']}" for one in components if one["purl"].startswith("pkg:pypi/")}
    lines = requirements.read_text().splitlines()
    assert python == {line.split()[0] for line in lines if line[:1].isalnum()}
    assert "pyspark==4.2.0" in python


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_the_wheel_runs_where_there_is_no_checkout(checkout: Path, released: Path, tmp_path: Path) -> None:
    python = _environment(checkout, released, tmp_path / "venv", "jobs")
    cache = tmp_path / "cache"
    fetched = f"jars-{digest(_JARS / 'jars.lock')[:16]}"
    cache.mkdir()
    # As fetched by a first start, which asks Maven Central only if no set-up did.
    fetch(_JARS, CACHE / fetched)
    (cache / fetched).symlink_to(CACHE / fetched)
    environment = {**os.environ, "ADLOOM_CACHE": str(cache), "PYTHONPATH": ""}

    def adloom(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(python.with_name("adloom")), *arguments],
            cwd=tmp_path,
            env=environment | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_S,
        )

    assert "drain" in adloom("--help").stdout
    assert adloom("generate", "--out", "events", "--events", "300", "--seed", "5").returncode == 0
    run = ("run", "--source", "events", "--lake", "lake", "--drain")
    refused = adloom(*run, JAVA_HOME="/no/java")
    assert (refused.returncode, "install Java 17 or 21" in refused.stderr) == (1, True)
    assert "the jars have not been fetched yet" in adloom("doctor", "--lake", "lake").stdout
    done = adloom(*run)
    assert done.returncode == 0, done.stderr
    (folder,) = cache.glob("spark-*")
    assert {jar.name for jar in folder.iterdir()} == {"adloom.jar", *(jar.name for jar in read_lock(_JARS))}
    query = ("sql", "select count(*) as n from bronze", "--lake", "lake", "--format", "json")
    asked = adloom(*query, JAVA_HOME="/no/java")
    assert asked.returncode == 0, asked.stderr
    records = sum(len(file.read_bytes().splitlines()) for file in (tmp_path / "events").iterdir())
    assert json.loads(asked.stdout) == [{"n": records}]
    report = adloom("validate", "--lake", "lake")
    assert report.returncode == 0, report.stdout + report.stderr


_DAG_FILE = """\
from ad_dags.factory import adloom_dags  # airflow

globals().update(adloom_dags("adloom_eu", "eu_"))
"""
_LOOK = """\
import json
from importlib.metadata import entry_points
from importlib.util import find_spec

from airflow.providers_manager import ProvidersManager

from airflow.dag_processing.dagbag import DagBag

bag = DagBag("dags")
plugins = [entry.load() for entry in entry_points(group="airflow.plugins") if entry.name == "adloom"]
print(json.dumps({
    "errors": {str(file): str(error) for file, error in bag.import_errors.items()},
    "dags": sorted(bag.dags),
    "pages": [app["url_prefix"] for plugin in plugins for app in plugin.fastapi_apps],
    "has_type": "adloom" in ProvidersManager().hooks,
    "heavy": [name for name in ("pyspark", "delta", "great_expectations", "pandas", "duckdb") if find_spec(name)],
}))
"""


@dataclass(frozen=True)
class _Airflow:
    """An Airflow with the wheel in the environment of ``python``, and its files in ``folder``."""

    python: Path
    folder: Path

    def run(self, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """Runs a command of the environment. The lake of the DAGs is that of the connection ``adloom_eu``."""
        extra = {"cluster": "yarn", "yarn_address": "http://127.0.0.1:1"}
        connection = {"conn_type": "adloom", "host": str(self.folder / "lake"), "extra": extra}
        environment = {
            **os.environ,
            "PYTHONPATH": "",
            "AIRFLOW_HOME": str(self.folder / "home"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW_CONN_ADLOOM_EU": json.dumps(connection),
        }
        return subprocess.run(
            [str(self.python.with_name(words[0])), *words[1:]],
            cwd=self.folder,
            env=environment | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_S,
        )

    def check(self) -> None:
        """The DAGs load, the pages and the connection type are there, and Spark and the like are not."""
        (self.folder / "dags").mkdir()
        (self.folder / "dags" / "ads.py").write_text(_DAG_FILE)
        (self.folder / "look.py").write_text(_LOOK)
        looked = self.run("python", "look.py")
        assert looked.returncode == 0, looked.stderr
        assert json.loads(looked.stdout.splitlines()[-1]) == {
            "errors": {},
            "dags": [f"eu_{name}" for name in DAG_NAMES],
            "pages": ["/adloom"],
            "has_type": True,
            "heavy": [],
        }


@pytest.mark.timeout(600)
def test_an_airflow_with_the_wheel_has_dags_connection_and_pages_without_spark(
    checkout: Path, released: Path, tmp_path: Path
) -> None:
    airflow = _Airflow(_environment(checkout, released, tmp_path / "venv", "airflow"), tmp_path)
    airflow.check()
    refused = airflow.run("adloom", "sql", "select 1", "--lake", "lake")
    assert (refused.returncode, "install adloom[jobs]" in refused.stderr) == (1, True), refused.stderr


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_its_tasks_start_the_command_of_another_environment(checkout: Path, released: Path, tmp_path: Path) -> None:
    airflow = _Airflow(_environment(checkout, released, tmp_path / "venv", "airflow"), tmp_path)
    airflow.check()
    assert airflow.run("airflow", "db", "migrate").returncode == 0
    (tmp_path / "lake" / CHECKPOINTS / "attribute").mkdir(parents=True)
    (tmp_path / "lake" / CHECKPOINTS / "attribute" / "started").touch()
    task = ("airflow", "tasks", "test", "eu_balance_ledger", "balance_ledger")
    without = airflow.run(*task)
    assert "install adloom[jobs] into an environment of its own" in without.stdout + without.stderr
    # Here from the environment that runs this test.
    done = airflow.run(*task, ADLOOM_COMMAND=str(Path(sys.executable).with_name("adloom")))
    assert f"adloom ledger --lake {tmp_path}/lake" in done.stdout + done.stderr


@pytest.mark.timeout(900)
@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.2.2", "3.3.2"])
def test_the_wheel_goes_into_every_airflow_that_it_allows(released: Path, tmp_path: Path, version: str) -> None:
    folder = tmp_path / "venv"
    subprocess.run([uv(), "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    (wheel,) = released.glob("*.whl")
    pip = [uv(), "pip", "install", "--quiet", "--link-mode", "symlink", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, f"apache-airflow=={version}", f"adloom[airflow] @ {wheel.as_uri()}"], check=True)
    _Airflow(folder / "bin" / "python", tmp_path).check()
