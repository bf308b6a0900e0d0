"""What a machine must have: for each thing that is missing, one line says what to install."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from spark_jobs.cli.opening import lifetime_of
from spark_jobs.config.settings import Settings
from spark_jobs.errors import EnvironmentMissingError
from spark_jobs.ingest.input_files import files_of
from spark_jobs.lake.open import open_lake
from spark_jobs.spark.java import Lifetime, check_java

_SIXTEEN_MIB = 16 << 20
SETUP = Path(__file__).parents[2] / "infra" / "setup.sh"
TOOLS = ("bash", "cat", "cut", "dirname", "env", "head", "mkdir", "sed", "sha256sum", "true")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without .venv, and a folder ``bin`` beside it with nothing but the shell's tools."""
    checkout, programs = tmp_path / "checkout", tmp_path / "bin"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(next(p for p in (Path("/bin") / tool, Path("/usr/bin") / tool) if p.exists()))
    jars = ("pom.xml", "jars.lock", "compile.py", "java/adloom/TailLogStore.java")
    for name in ("pyproject.toml", "uv.lock", "infra/setup.sh", *(f"spark_jobs/spark/jars/{one}" for one in jars)):
        copy = checkout / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((SETUP.parents[1] / name).read_bytes())
    return checkout


def put(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def set_up(checkout: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": str(checkout.parent / "bin"), "HOME": str(checkout.parent), **more}
    command = [checkout.parent / "bin" / "bash", checkout / "infra" / "setup.sh"]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)


PYTHON = "exit 0"
JAVA = "echo 'openjdk version \"{}.0.1\"' >&2"


@pytest.mark.parametrize(
    ("programs", "problem"),
    [
        pytest.param({"java": JAVA.format(11)}, "java is Java 11", id="old-java"),
        pytest.param({"java": JAVA.format(25)}, "java is Java 25", id="new-java"),
        pytest.param({"python3": PYTHON}, "Java 17 or 21 is needed and java was not found", id="no-java"),
        pytest.param(
            {"java": JAVA.format(17)}, "Python 3.11, 3.12 or 3.13 is needed and was not found", id="no-python"
        ),
        pytest.param(
            {"java": JAVA.format(21), "python3": "exit 1"},
            "Python 3.11, 3.12 or 3.13 is needed and was not found",
            id="other-python",
        ),
        pytest.param(
            {"java": JAVA.format(21), "python3": 'case "$2" in *venv*) exit 1;; esac'},
            "python3 lacks the module venv",
            id="no-venv",
        ),
    ],
)
def test_set_up_names_what_is_missing_and_how_to_get_it(checkout: Path, programs: dict[str, str], problem: str) -> None:
    for name, script in programs.items():
        put(checkout.parent / "bin", name, script)
    done = set_up(checkout)
    assert done.returncode == 1
    assert problem in done.stderr
    assert "apt-get install" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_python_that_was_asked_for_and_does_not_fit_is_refused(checkout: Path) -> None:
    put(checkout.parent / "bin", "python3.9", "[ $1 = -c ] && exit 1; echo Python 3.9.2")
    put(checkout.parent / "bin", "python3", PYTHON)
    done = set_up(checkout, PYTHON="python3.9")
    assert done.returncode == 1
    assert "PYTHON=python3.9 is not Python 3.11, 3.12 or 3.13 (it is Python 3.9.2)" in done.stderr


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        pytest.param(("python3", "python3.12"), "python3", id="the-systems-own"),
        pytest.param(("python3.13", "python3.12"), "python3.12", id="the-oldest-of-the-others"),
    ],
)
def test_set_up_takes_a_python_of_the_system(checkout: Path, installed: tuple[str, ...], chosen: str) -> None:
    for name in installed:
        put(checkout.parent / "bin", name, f'case "$2" in *executable*) echo /usr/bin/{name};; esac')
    assert uv_commands(checkout) == [
        f"sync --quiet --locked --extra jobs --no-python-downloads --python /usr/bin/{chosen} --compile-bytecode"
    ]


def test_where_the_system_has_no_python_that_fits_uv_downloads_one(checkout: Path) -> None:
    assert uv_commands(checkout) == [
        "python install 3.13",
        "sync --quiet --locked --extra jobs --python 3.13 --compile-bytecode",
    ]
    put(checkout.parent / "bin", "uv", "exit 2")
    done = set_up(checkout)
    assert done.returncode == 1
    assert "uv could not download Python 3.13: install Python 3.11, 3.12 or 3.13" in done.stderr


def uv_commands(checkout: Path) -> list[str]:
    """Sets up with a uv that only writes down what it is asked for, in the order of asking."""
    put(checkout.parent / "bin", "java", JAVA.format(17))
    put(checkout.parent / "bin", "uv", f'echo "$@" >>{checkout.parent}/asked')
    # There is no .venv, as that uv makes none.
    assert set_up(checkout).returncode != 0
    return (checkout.parent / "asked").read_text().splitlines()


@pytest.mark.parametrize(
    ("sizes", "lifetime"),
    [
        pytest.param({"a.jsonl": _SIXTEEN_MIB - 1}, Lifetime.SHORT, id="just-below"),
        pytest.param({"a.jsonl": _SIXTEEN_MIB - 1, "b.jsonl": 1}, Lifetime.RUN, id="together"),
        pytest.param({"a.jsonl.gz": _SIXTEEN_MIB // 8}, Lifetime.RUN, id="compressed"),
        pytest.param({"lake/bronze/events/a.parquet": _SIXTEEN_MIB // 3}, Lifetime.SHORT, id="a-small-lake"),
        pytest.param({"lake/bronze/events/a.parquet": _SIXTEEN_MIB // 3 + 1}, Lifetime.RUN, id="a-large-lake"),
        pytest.param({"a.jsonl": 99, "lake/bronze/events/a.parquet": _SIXTEEN_MIB // 3}, Lifetime.RUN, id="both"),
    ],
)
def test_how_long_java_is_to_work_comes_from_the_size_of_the_lake_and_its_input(
    sizes: dict[str, int], lifetime: Lifetime, tmp_path: Path
) -> None:
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    lake, files = (
        open_lake(str(tmp_path / "lake")),
        files_of(Settings(), tmp_path) if any("/" not in name for name in sizes) else [],
    )
    assert lifetime_of(lake, files) is lifetime


@pytest.mark.parametrize(("version", "found"), [("11", "is Java 11"), ("25", "is Java 25"), ("", "an unknown version")])
def test_a_java_that_spark_does_not_run_on_is_refused(
    version: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    put(tmp_path / "bin", "java", JAVA.format(version) if version else "true")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentMissingError, match=found):
        check_java()


def test_a_missing_java_is_reported_with_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(EnvironmentMissingError, match="no Java found"):
        check_java()
