"""Great Expectations at work: rules in, outcomes and Data Docs out.

Importing this module takes seconds: import it where a validation begins, never at the top of a command or a DAG.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Kind, Rule

with warnings.catch_warnings():
    # Great Expectations and what it imports warn of their own deprecations, which no user of adloom can heed.
    warnings.simplefilter("ignore")
    import great_expectations as gx
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults
    from great_expectations.expectations.expectation import Expectation

    from expectations import counting

_SITE = "lake"
_PAGE_VIEW = {"module_name": "expectations.docs_view", "class_name": "LakePageView"}
_RESULT_FORMAT = {"result_format": "BASIC", "partial_unexpected_count": 0}  # counts, no values


@dataclass(frozen=True)
class Outcome:
    """What Great Expectations says of one rule: whether it holds, and in how many rows it does not."""

    rule: Rule
    holds: bool
    unexpected_count: int


class Engine:
    """One run of Great Expectations.

    Attributes:
        docs: The folder for its Data Docs; None when none are to be written.
    """

    def __init__(self, docs: Path | None = None, now: datetime | None = None) -> None:
        self._docs = docs
        self._run = RunIdentifier(run_time=now or datetime.now(UTC), run_name="validation")
        self._context = gx.get_context(mode="ephemeral", project_config=_configuration(docs))
        self._source = self._context.data_sources.add_spark("lake", persist=False)

    def check(self, df: DataFrame, name: str, rules: Sequence[Rule]) -> tuple[Outcome, ...]:
        """The outcome of each of ``rules`` on ``df``, in their order.

        Args:
            df: The subjects of the rules, as ``subjects`` gives them; best cached, for it is read twice.
            name: Name of the suite.
            rules: What to check.

        Raises:
            RuntimeError: Great Expectations could not compute an answer; its own error says why.
        """
        suite = self._context.suites.add(gx.ExpectationSuite(name=name))
        suite.expectations = [as_expectation(rule) for rule in rules]
        suite.save()
        batch = self._source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("rows")
        validation = self._context.validation_definitions.add(
            gx.ValidationDefinition(name=name, data=batch, suite=suite)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = validation.run(batch_parameters={"dataframe": df}, result_format=_RESULT_FORMAT, run_id=self._run)
        by_name = {result.expectation_config.meta["rule"]: result for result in found.results}
        return tuple(_outcome(rule, by_name[rule.name]) for rule in rules)

    def write_docs(self) -> Path:
        """Render the pages of every suite checked so far, and give their folder.

        Raises:
            ValueError: There is no folder for them.
        """
        if self._docs is None:
            raise ValueError("this engine was given no folder for its pages")
        self._context.build_data_docs(site_names=[_SITE], build_index=False)
        return self._docs


def subjects(df: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """What ``rules`` look at, a column each, of ``df``, which has every column that they name."""
    columns = {rule.subject: rule.subject_sql for rule in rules}
    return df.select(*(F.expr(sql).alias(name) for name, sql in columns.items()))


def as_expectation(rule: Rule) -> Expectation:
    """The Great Expectations check that says what ``rule`` says."""
    common: dict[str, Any] = {
        "column": rule.subject,
        "severity": rule.severity.value,
        "mostly": rule.mostly,
        "description": f"{rule.reason} ({rule.name}, {rule.severity.value})",
        "meta": {"rule": rule.name},
    }
    bounds = {"min_value": rule.minimum, "max_value": rule.maximum}
    match rule.kind:
        case Kind.NOT_NULL:
            return counting.ExpectColumnValuesToNotBeNullByCount(**common)
        case Kind.IN_SET:
            return counting.ExpectColumnValuesToBeInSetByCount(**common, value_set=list(rule.values))
        case Kind.BETWEEN:
            return counting.ExpectColumnValuesToBeBetweenByCount(**common, **bounds)
        case Kind.LENGTH_BETWEEN:
            return counting.ExpectColumnValueLengthsToBeBetweenByCount(**common, **bounds)


def _outcome(rule: Rule, result: Any) -> Outcome:
    if result.exception_info and "exception_message" not in result.exception_info:
        texts = {str(info["exception_message"]) for info in result.exception_info.values()}
        raise RuntimeError(f"rule {rule.name} on column {rule.column} could not be computed: {'; '.join(texts)}")
    if result.exception_info and result.exception_info["raised_exception"]:
        raise RuntimeError(f"rule {rule.name} could not be computed: {result.exception_info['exception_message']}")
    return Outcome(rule, bool(result.success), int(result.result.get("unexpected_count") or 0))


def _configuration(docs: Path | None) -> DataContextConfig:
    site = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs)},
        # The lake's own landing page is the index.
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        "site_section_builders": {
            "expectations": {
                "class_name": "DefaultSiteSectionBuilder",
                "source_store_name": "expectations_store",
                "renderer": {"class_name": "ExpectationSuitePageRenderer"},
                "view": _PAGE_VIEW,
            },
            "validations": {
                "class_name": "DefaultSiteSectionBuilder",
                "source_store_name": "validation_results_store",
                "renderer": {"class_name": "ValidationResultsPageRenderer"},
                "view": _PAGE_VIEW,
            },
        },
    }
    return DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        data_docs_sites={_SITE: site} if docs else {},
        analytics_enabled=False,
        progress_bars={"globally": False, "metric_calculations": False},
    )
