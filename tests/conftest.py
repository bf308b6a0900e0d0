"""One Spark session and one way to run the pipeline, for all tests that need them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.spark.java import Lifetime
from spark_jobs.spark.session import start_session, stop_session
from tests.support.lakes import RunLake
from tests.support.runs import run_in

# What stands in the environment of the machine is not to change a test.
for name in [name for name in os.environ if name.startswith("ADLOOM_") and "__" in name]:
    del os.environ[name]

# A process of pytest-xdist has no main file, and PySpark takes that for its own doctests and ends the process.
if not hasattr(sys.modules["__main__"], "__file__"):
    sys.modules["__main__"].__file__ = __file__

# Tests are many short runs: code that is compiled quickly serves them better than code that runs quickly.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m")

# No test fails because the machine was busy: timings live in benchmarks.
hypothesis.settings.register_profile("adloom", deadline=None)
hypothesis.settings.load_profile("adloom")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # As commands do on lakes as small as those of tests.
    log_file = tmp_path_factory.mktemp("spark") / "spark.log"
    # `make mutants` starts pytest hundreds of times.
    kept = Settings.model_validate({"spark": {"keep_java": os.environ.get("TESTS_KEEP_JAVA", "0s")}})
    session = start_session(kept, log_file=log_file, lifetime=Lifetime.SHORT)
    yield session
    stop_session(session)


@pytest.fixture
def run_lake(spark: SparkSession, tmp_path: Path) -> RunLake:
    """Runs the pipeline over a folder of files, in this process, and gives the lake."""

    def run_it(
        source: Path,
        *,
        settings: Settings | None = None,
        drain: bool = True,
        measure: bool = False,
        lake: Lake | None = None,
    ) -> Lake:
        used, place = settings or Settings(), lake or open_lake(str(tmp_path / "lake"))
        run_in(spark, used, place, source, drain=drain, measure=measure)
        return place

    return run_it
