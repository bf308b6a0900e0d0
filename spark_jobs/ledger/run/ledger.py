"""The ledger of a lake: how many records came in, and where each one went."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ledger:
    """Row counts over the whole lake.

    received = ok + quarantined; ok = kept + duplicates + late (+ ``unaccounted``, which must be 0).
    ``surplus`` counts rows of silver that no record of bronze accounts for, and must be 0 too.

    A record that was requeued counts as ok from then on, and no longer as quarantined. The rows that a requeue adds are
    no records received.
    """

    received: int
    quarantined: dict[str, int]
    """Records that are still in quarantine, by verdict."""
    ok: int
    kept: int
    duplicates: int
    late: int
    unaccounted: int
    surplus: int
    attribution: dict[str, int] = field(default_factory=dict)
    """Rows of gold/attributions by status."""
    attribution_late: int = 0
    """Impressions and clicks in silver that came too late for the join; only possible after a drain."""
    attribution_open: int = 0
    """Impressions and clicks that still wait for their counterpart or for the watermark."""
    sessions: dict[str, int] = field(default_factory=dict)
    """Rows of gold/sessions by ``ended_by``."""
    session_late: int = 0
    """Events in silver that came too late for their session."""
    session_open: int = 0
    """Events in sessions that have not ended yet."""
    session_initial: int = 0
    """Events that the initial state of sessionize brought: in sessions or open, and not in silver."""
    session_userless: int = 0
    """Events in silver without a user, as a source may have them: they are in no session."""
    conversions: int = 0
    """Conversions in silver: a part of ``kept``; they are in no session, with or without a user."""
    late_found: int = 0
    """Late events in ``silver/late_events``, which `adloom repair` brings to gold: a part of ``late``."""
    late_expired: int = 0
    """Late events there that came later than ``repair.horizon`` allows, and so correct nothing: a part of ``late``."""
    requeued: int = 0
    """Records that were in quarantine and are ok since they were judged anew: a part of ``ok``."""

    @property
    def total_quarantined(self) -> int:
        """Number of records that are still in quarantine."""
        return sum(self.quarantined.values())

    def as_json(self) -> dict[str, Any]:
        """The ledger as plain values."""
        return asdict(self)
