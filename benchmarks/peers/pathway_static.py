"""Pathway doing the main job's work: `python pathway_static.py SOURCE OUT`, PATHWAY_THREADS in the environment.

Its static mode: the files are read to their end, the engine is that of its streams. README.md explains the settings.
"""

import sys
from pathlib import Path

import pathway as pw

_GAP_MS, _WINDOW_MS = 300_000, 3_600_000


_ALWAYS = ("event_type", "event_id", "event_time", "user_id")
_OF_SOME = {"campaign_id": str, "ad_id": str, "cost_micros": int, "impression_id": str}


def main(source: Path, out: Path) -> None:
    """Writes both tables as JSON Lines."""
    columns = {name: pw.column_definition(dtype=str) for name in _ALWAYS}
    columns |= {name: pw.column_definition(dtype=kind | None, default_value=None) for name, kind in _OF_SOME.items()}
    found = pw.io.jsonlines.read(str(source), schema=pw.schema_builder(columns), mode="static")
    kept = found.groupby(found.event_type, found.event_id).reduce(
        found.event_type,
        found.event_id,
        **{name: pw.reducers.any(found[name]) for name in ("event_time", "user_id", *_OF_SOME)},
    )
    ms = kept.event_time.dt.strptime("%Y-%m-%dT%H:%M:%S%.3fZ").dt.timestamp(unit="ms")
    # Pathway returns a fraction, slightly off the millisecond.
    silver = kept.with_columns(ms=pw.cast(int, ms + 0.5))
    pw.io.jsonlines.write(_attributions(silver), str(out / "attributions.jsonl"))
    pw.io.jsonlines.write(_sessions(silver), str(out / "sessions.jsonl"))
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def _attributions(silver: pw.Table) -> pw.Table:
    shown = silver.filter(silver.event_type == "impression")
    clicks = silver.filter(silver.event_type == "click")
    pairs = shown.interval_join_outer(
        clicks, shown.ms, clicks.ms, pw.temporal.interval(0, _WINDOW_MS), shown.event_id == clicks.impression_id
    )
    status = pw.if_else(
        shown.event_id.is_none(), "orphan_click", pw.if_else(clicks.event_id.is_none(), "unclicked", "clicked")
    )
    return pairs.select(
        status=status,
        impression_id=pw.coalesce(shown.event_id, clicks.impression_id),
        impression_ms=shown.ms,
        campaign_id=shown.campaign_id,
        ad_id=shown.ad_id,
        user_id=pw.coalesce(shown.user_id, clicks.user_id),
        cost_micros=shown.cost_micros,
        click_id=clicks.event_id,
        click_ms=clicks.ms,
    )


def _sessions(silver: pw.Table) -> pw.Table:
    window = pw.temporal.session(predicate=lambda one, other: other - one <= _GAP_MS)
    return silver.windowby(silver.ms, window=window, instance=silver.user_id).reduce(
        user_id=pw.this._pw_instance,  # noqa: SLF001 its documented name
        start_ms=pw.reducers.min(pw.this.ms),
        end_ms=pw.reducers.max(pw.this.ms),
        event_count=pw.reducers.count(),
        events=pw.reducers.tuple(pw.this.event_id),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
