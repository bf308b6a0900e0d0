"""The top-level names of this project belong to no other package that it installs."""

from importlib.metadata import packages_distributions

import pytest


@pytest.mark.parametrize("name", ["spark_jobs", "expectations", "ad_dags", "infra", "tests", "benchmarks"])
def test_no_installed_package_has_a_name_of_this_project(name: str) -> None:
    assert set(packages_distributions().get(name, [])) <= {"adloom"}
