"""Spark's configuration, as far as it needs no Java."""

import shlex
from pathlib import Path

from spark_jobs.config.settings import Settings
from spark_jobs.spark.conf import spark_conf


def test_a_space_in_the_folder_of_a_lake_stays_within_one_option_of_java(tmp_path: Path) -> None:
    log_file = tmp_path / "a lake" / "spark.log"
    options = shlex.split(spark_conf(Settings(), log_file=log_file)["spark.driver.extraJavaOptions"])
    assert f"-Dadloom.log={log_file}" in options
    assert all(option.startswith("-") for option in options)
