"""The campaigns that have their own Prometheus series: each series costs Prometheus memory."""

from collections import defaultdict
from collections.abc import Iterable

MOST_CAMPAIGNS = 100
"""The number of campaigns with their own series, those with the largest amounts."""
OTHERS = "(others)"
"""The label of all other campaigns together."""


def largest(amounts: Iterable[tuple[str, float]]) -> set[str]:
    """The :data:`MOST_CAMPAIGNS` campaigns with the largest sums of ``amounts``; of equal ones, the first."""
    sums = defaultdict[str, float](float)
    for campaign, amount in amounts:
        sums[campaign] += amount
    return set(sorted(sums, key=lambda campaign: -sums[campaign])[:MOST_CAMPAIGNS])
