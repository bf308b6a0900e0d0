"""The dashboard *quality*: can the numbers be trusted?"""

from infra.grafana.model import Dashboard, Kind, Panel, Section

_VALIDATION = Section(
    "Expectations",
    (
        Panel(
            "Critical ones that fail",
            "Critical expectations that fail in the latest validation: ValidationFailed. Airflow's page Data quality "
            "shows the rows.",
            'max(adloom_validation_failed{severity="critical"})',
            "none",
            Kind.NUMBER,
            alarm=1,
        ),
        Panel(
            "Warnings",
            "Expectations of severity warning that fail in the latest validation.",
            'max(adloom_validation_failed{severity="warning"})',
            "none",
            Kind.NUMBER,
        ),
        Panel(
            "Last validation",
            "Time since the latest validation. It is due every hour; three hours raise ValidationMissing.",
            "time() - max(adloom_validation_time_seconds)",
            "s",
            Kind.NUMBER,
            alarm=3 * 3600,
        ),
        Panel(
            "Unaccounted rows",
            "Rows that are lost, in all accounts of the ledger. One is too many: LedgerOffBalance.",
            "sum(adloom_ledger_unaccounted)",
            "none",
            Kind.NUMBER,
            alarm=1,
        ),
        Panel(
            "Surplus rows",
            "Rows that are there without a cause, in all accounts of the ledger. One is too many: LedgerOffBalance.",
            "sum(adloom_ledger_surplus)",
            "none",
            Kind.NUMBER,
            alarm=1,
        ),
        Panel(
            "Last update of the ledger",
            "Time since the last update. It is due every 10 minutes; an hour raises LedgerMissing.",
            "time() - max(adloom_ledger_time_seconds)",
            "s",
            Kind.NUMBER,
            alarm=3600,
        ),
        Panel(
            "Expectations that fail",
            "How many fail in the validation that was the latest then, by severity.",
            "max by (severity) (adloom_validation_failed)",
            "none",
            legend="{{severity}}",
        ),
        Panel(
            "Share of records quarantined",
            "Records that ingest quarantined among those it read in 15 minutes. More than 5 % raises QuarantineHigh.",
            "sum(increase(adloom_quarantined_rows_total[15m])) / "
            'sum(increase(adloom_input_rows_total{query="ingest"}[15m]))',
            "percentunit",
            legend="quarantined",
            alarm=0.05,
        ),
    ),
)
_VERDICTS = Section(
    "Verdicts",
    (
        Panel(
            "In quarantine, by source",
            "Records that are in quarantine. `adloom requeue` takes them out once their mapping is corrected.",
            "sum by (source) (adloom_ledger_quarantined)",
            "short",
            legend="{{source}}",
        ),
        Panel(
            "In quarantine, by verdict",
            "Why they are there. `adloom show quarantine` has the records.",
            "sum by (verdict) (adloom_ledger_quarantined)",
            "short",
            legend="{{verdict}}",
        ),
        Panel(
            "New in an hour, by source and verdict",
            "By how much each count of the quarantine grew in the hour before.",
            "sum by (source, verdict) (delta(adloom_ledger_quarantined[1h]))",
            "short",
            legend="{{source}}: {{verdict}}",
        ),
        Panel(
            "Sources and verdicts",
            "Records in quarantine now.",
            "sum by (source, verdict) (adloom_ledger_quarantined) > 0",
            "short",
            Kind.TABLE,
            legend="records",
        ),
    ),
)
_LEDGER = Section(
    "Ledger",
    (
        Panel(
            "Records received in an hour",
            "By how much the count grew, from update to update.",
            "sum(delta(adloom_ledger_received[1h]))",
            "short",
            legend="received",
        ),
        Panel(
            "Copies among the records that fit",
            "Share of duplicates among all records so far. A jump means that a sender repeats itself.",
            "sum(adloom_ledger_duplicates) / sum(adloom_ledger_ok)",
            "percentunit",
            legend="duplicates",
        ),
        Panel(
            "Late records, by what became of them",
            "Records that came too late for silver. Repairs turn awaiting and pending ones into repaired ones; what is "
            "expired or frozen stays out of gold.",
            "sum by (fate) (adloom_ledger_late)",
            "short",
            legend="{{fate}}",
        ),
        Panel(
            "Late events in each query",
            "Events that came too late for a query, up to the last update.",
            'sum by (account) (adloom_ledger_late_events{account!="records"})',
            "short",
            legend="{{account}}",
        ),
        Panel(
            "Pending",
            "Rows that an account has not dealt with yet. If they only grow, a query is behind.",
            "sum by (account) (adloom_ledger_pending)",
            "short",
            legend="{{account}}",
        ),
        Panel(
            "Off balance",
            "Rows that are lost or have no cause, by account. It must stay at zero.",
            "sum by (account) (adloom_ledger_unaccounted) + sum by (account) (adloom_ledger_surplus)",
            "short",
            legend="{{account}}",
            alarm=1,
        ),
    ),
)
QUALITY = Dashboard(
    "quality",
    "adloom: data quality",
    "Can the numbers be trusted? Expectations, verdicts by source, and the ledger.",
    (_VALIDATION, _VERDICTS, _LEDGER),
)
