"""Spark's configuration, as far as it needs no Java."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.spark.conf import spark_conf
from spark_jobs.spark.java import EXECUTOR_OPTIONS, Lifetime, driver_options


def test_a_space_in_the_folder_of_a_lake_stays_within_one_option_of_java(tmp_path: Path) -> None:
    log_file = tmp_path / "a lake" / "spark.log"
    options = shlex.split(spark_conf(Settings(), log_file=log_file)["spark.driver.extraJavaOptions"])
    assert f"-Dadloom.log={log_file}" in options
    assert all(option.startswith("-") for option in options)


@pytest.mark.parametrize(
    "locale",
    ["-Duser.language=fa -Duser.country=IR", "-Duser.language.format=bn -Duser.extensions.format=u-nu-beng"],
)
@pytest.mark.parametrize("options", [driver_options(Lifetime.RUN, log_file=None, temporary=None), EXECUTOR_OPTIONS])
def test_numbers_have_the_same_digits_wherever_people_live(locale: str, options: Sequence[str]) -> None:
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": locale}
    command = ["java", *options, "-XshowSettings:locale", "-version"]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr
    found = [line.strip() for line in printed.splitlines() if line.strip().startswith("default")]
    assert [line.rpartition(" = ")[2] for line in found] == ["English (United States)"] * 3
