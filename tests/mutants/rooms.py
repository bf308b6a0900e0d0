"""What is mutated, and the tests that must notice: for each room its modules, and its tests, the quick ones first."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Room:
    """Modules, and the tests that are to notice a fault in them, in the order in which they are run."""

    name: str
    modules: tuple[str, ...]
    """Patterns of paths."""
    tests: tuple[str, ...]
    runs_in_workers: bool = False
    """Whether Spark's workers run it too, where nobody sees which line a test runs."""

    def sources(self, root: Path) -> list[str]:
        """The paths of its modules, relative to ``root``."""
        return sorted(str(path.relative_to(root)) for pattern in self.modules for path in root.glob(pattern))


_GOLDEN = "tests/golden/test_golden.py"

ROOMS = (
    Room(
        "operators",
        (
            "spark_jobs/queries/*/operator.py",
            "spark_jobs/queries/*/rebuild.py",
            "spark_jobs/queries/state_functions/processors.py",
            "spark_jobs/queries/campaign_stats/windows.py",
            "spark_jobs/queries/open_events.py",
        ),
        (
            "tests/unit/test_keyed_processors.py",
            _GOLDEN,
            "tests/spark/test_deduplicate.py",
            "tests/spark/test_measure.py",
            "tests/spark/test_properties.py",
            "tests/spark/test_reset.py",
        ),
        runs_in_workers=True,
    ),
    Room(
        "rules",
        ("spark_jobs/queries/*/rule.py", "spark_jobs/days/status.py", "spark_jobs/ingest/in_python/*.py"),
        (
            "tests/unit/test_average_rule.py",
            "tests/unit/test_stretch.py",
            "tests/unit/test_status_rule.py",
            "tests/unit/test_days.py",
            "tests/unit/test_check_events.py",
            "tests/unit/test_credit_rule.py",
            "tests/spark/test_days.py",
            "tests/spark/test_verdict_agreement.py",
        ),
    ),
    Room(
        "corrections",
        ("spark_jobs/queries/*/correction.py", "spark_jobs/queries/chains.py", "spark_jobs/queries/correction.py"),
        (
            "tests/spark/test_repair.py",
            "tests/spark/test_repair_properties.py",
            "tests/spark/test_chains.py",
            "tests/spark/test_replay.py",
            "tests/spark/test_marks_effects.py",
        ),
    ),
    Room(
        "restatements",
        (
            "spark_jobs/restatements/[!m]*.py",
            "spark_jobs/queries/facts.py",
            "spark_jobs/queries/identity.py",
        ),
        (
            "tests/spark/test_repair.py",
            "tests/spark/test_repair_properties.py",
            "tests/spark/test_replay.py",
            "tests/spark/test_facts.py",
            "tests/spark/test_repair_interrupted.py",
            "tests/spark/test_days_read.py",
            "tests/spark/test_marks_effects.py",
            "tests/spark/test_credit.py",
        ),
    ),
    Room(
        "credit",
        ("spark_jobs/credit/*.py",),
        (
            "tests/spark/test_credit_rows.py",
            "tests/spark/test_credit.py",
            "tests/spark/test_credit_copies.py",
            "tests/spark/test_credit_orders.py",
            "tests/spark/test_net.py",
        ),
    ),
    Room(
        "ledger",
        ("spark_jobs/ledger/*.py",),
        ("tests/unit/test_ledger.py", _GOLDEN, "tests/spark/test_ledger.py", "tests/spark/test_run.py"),
    ),
)
