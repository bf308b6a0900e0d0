"""Runs Great Expectations: rules in, outcomes and Data Docs out.

Importing this module takes seconds: import it where a validation starts, never at the top of a command or a DAG file.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, RuleKind

with warnings.catch_warnings():
    # Great Expectations and its dependencies warn about their own deprecations, which adloom's users cannot fix.
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
class RuleOutcome:
    """Great Expectations' result for one rule: whether it holds, and how many rows break it."""

    rule: Rule
    holds: bool
    unexpected_count: int


class Engine:
    """One run of Great Expectations.

    Attributes:
        docs: The folder for the Data Docs; None to write none.
    """

    def __init__(self, docs: Path | None = None, now: datetime | None = None) -> None:
        self._docs = docs
        self._run = RunIdentifier(run_time=now or datetime.now(UTC), run_name="validation")
        self._context = gx.get_context(mode="ephemeral", project_config=_configuration(docs))
        self._source = self._context.data_sources.add_spark("lake", persist=False)

    def check(self, df: DataFrame, name: str, rules: Sequence[Rule]) -> tuple[RuleOutcome, ...]:
        """Checks ``rules`` on ``df`` and returns their outcomes in the same order.

        Args:
            df: The columns the rules check, from :func:`subjects`; read twice, so cache it.
            name: Name of the suite.
            rules: The rules to check.

        Raises:
            RuntimeError: Great Expectations could not compute a result; its own error says why.
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
        """Renders the pages of every suite checked so far and returns their folder.

        Raises:
            ValueError: The engine was created without a folder for Data Docs.
        """
        if self._docs is None:
            raise ValueError("this engine has no folder for Data Docs; pass docs= when creating it")
        self._context.build_data_docs(site_names=[_SITE], build_index=False)
        return self._docs


def subjects(df: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The expressions that ``rules`` check, one column each; ``df`` must have every column they name."""
    columns = {rule.subject: rule.subject_sql for rule in rules}
    return df.select(*(F.expr(sql).alias(name) for name, sql in columns.items()))


def as_expectation(rule: Rule) -> Expectation:
    """The Great Expectations check equivalent to ``rule``."""
    common: dict[str, Any] = {
        "column": rule.subject,
        "severity": rule.severity.value,
        "mostly": rule.mostly,
        "description": f"{rule.reason} ({rule.name}, {rule.severity.value})",
        "meta": {"rule": rule.name},
    }
    bounds = {"min_value": rule.minimum, "max_value": rule.maximum}
    match rule.kind:
        case RuleKind.NOT_NULL:
            return counting.ExpectColumnValuesToNotBeNullByCount(**common)
        case RuleKind.IN_SET:
            return counting.ExpectColumnValuesToBeInSetByCount(**common, value_set=list(rule.values))
        case RuleKind.BETWEEN:
            return counting.ExpectColumnValuesToBeBetweenByCount(**common, **bounds)
        case RuleKind.LENGTH_BETWEEN:
            return counting.ExpectColumnValueLengthsToBeBetweenByCount(**common, **bounds)


def _outcome(rule: Rule, result: Any) -> RuleOutcome:
    if result.exception_info and "exception_message" not in result.exception_info:
        texts = {str(info["exception_message"]) for info in result.exception_info.values()}
        raise RuntimeError(f"rule {rule.name} on column {rule.column} could not be computed: {'; '.join(texts)}")
    if result.exception_info and result.exception_info["raised_exception"]:
        raise RuntimeError(f"rule {rule.name} could not be computed: {result.exception_info['exception_message']}")
    return RuleOutcome(rule, bool(result.success), int(result.result.get("unexpected_count") or 0))


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
