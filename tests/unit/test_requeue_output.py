"""What `adloom requeue` prints."""

from datetime import UTC, datetime
from io import StringIO

from spark_jobs.cli.requeue import _print_outcome, _print_table
from spark_jobs.cli.terminal import terminal
from spark_jobs.ingest.requeue_model import JudgedRecords, Requeued

_JUDGED = (
    JudgedRecords("ads", "missing_event_type", "ok", 1200, late=30),
    JudgedRecords(
        "ads", "missing_event_type", "missing_user_id", 4, reason="user_id = $.uid: $.uid is missing [bold]\x1b[2J"
    ),
    JudgedRecords(None, "malformed_json", "malformed_json", 7),
)
_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _printed(found: Requeued, *, dry_run: bool) -> str:
    console = terminal()
    console.file, console.width = StringIO(), 200
    _print_table(console, found, "/lake")
    _print_outcome(console, found, dry_run=dry_run)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_each_source_and_verdict_has_a_line() -> None:
    lines = [" ".join(line.split()) for line in _printed(Requeued(_JUDGED, _AT), dry_run=False).splitlines()]
    assert "ads missing_event_type ok 1,200 30" in lines
    assert (
        "ads missing_event_type missing_user_id 4 user_id = $.uid: $.uid is missing [bold]\N{REPLACEMENT CHARACTER}[2J"
        in lines
    )
    assert "none malformed_json malformed_json 7" in lines
    assert "looked at 1,211 records: 1,200 fit now, 11 do not" in lines
    assert any(line.startswith("30 of those that fit lie behind the watermark") for line in lines)
    assert any(line.startswith("requeued 1,200 records at 2026-03-01T12:00:00.000000Z") for line in lines)


def test_a_dry_run_and_a_requeue_of_nothing_say_so() -> None:
    assert _printed(Requeued(_JUDGED), dry_run=True).endswith("dry run: nothing was written\n")
    assert _printed(Requeued(_JUDGED[1:]), dry_run=False).endswith("nothing was requeued\n")
