"""Great Expectations' checks without their search for sample values.

A stock check plans a search for offending values even when asked to show none; on a small table that search took longer
than the count. ``expectations.quarantine`` finds the failing rows, for all rules at once.
"""

from typing import Any

from great_expectations.expectations import (
    ExpectColumnValueLengthsToBeBetween,
    ExpectColumnValuesToBeBetween,
    ExpectColumnValuesToBeInSet,
    ExpectColumnValuesToNotBeNull,
)


class _CountOnly:
    """Removes the sample values from the metrics a check requests."""

    map_metric: str

    def get_validation_dependencies(self, *arguments: Any, **named: Any) -> Any:
        """The metrics the check needs."""
        dependencies = super().get_validation_dependencies(*arguments, **named)  # type: ignore[misc] # of the other base
        dependencies.remove_metric_configuration(f"{self.map_metric}.unexpected_values")
        return dependencies


class ExpectColumnValuesToNotBeNullByCount(_CountOnly, ExpectColumnValuesToNotBeNull):  # type: ignore[misc] # untyped base
    """No value is null."""


class ExpectColumnValuesToBeInSetByCount(_CountOnly, ExpectColumnValuesToBeInSet):  # type: ignore[misc] # untyped base
    """Every value is one of a set."""


class ExpectColumnValuesToBeBetweenByCount(_CountOnly, ExpectColumnValuesToBeBetween):  # type: ignore[misc] # untyped base
    """Every value lies within bounds."""


class ExpectColumnValueLengthsToBeBetweenByCount(_CountOnly, ExpectColumnValueLengthsToBeBetween):  # type: ignore[misc] # untyped base
    """Every value's length lies within bounds."""
