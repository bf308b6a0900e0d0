"""The dashboard *operations*: is everything running, and does it keep up?"""

from infra.grafana.model import Dashboard, Kind, Panel, Section

_NOW = Section(
    "Now",
    (
        Panel(
            "Alerts that fire",
            "Alerts of Prometheus that fire now; the table below names them, docs/runbook.md says what to do.",
            'count(ALERTS{alertstate="firing"}) or vector(0)',
            "none",
            Kind.NUMBER,
            alarm=1,
        ),
        Panel(
            "Jobs that are missing",
            "Jobs that should run and do not: their driver has not said for three minutes that it is alive, or "
            "restarts do not help (JobDown, JobFailed).",
            "count((time() - adloom_job_last_seen_seconds > 180 and adloom_job_wanted == 1) or adloom_job_failed == 1) "
            "or vector(0)",
            "none",
            Kind.NUMBER,
            alarm=1,
        ),
        Panel(
            "Queries that run",
            "Queries whose driver answers Prometheus and says that they run.",
            "count(adloom_query_up == 1) or vector(0)",
            "none",
            Kind.NUMBER,
        ),
        Panel(
            "Lake unreadable",
            "Yes if the exporter cannot read the lake, or does not answer itself: LakeUnreadable. Look at the object "
            "store first.",
            "(1 - adloom_lake_readable) or absent(adloom_lake_readable)",
            "bool_yes_no",
            Kind.NUMBER,
            alarm=1,
        ),
        Panel(
            "Services that do not answer",
            "Targets that Prometheus cannot scrape: TargetDown. Drivers are left out: a job that is stopped serves no "
            "metrics.",
            'count(up{job!="adloom"} == 0) or vector(0)',
            "none",
            Kind.NUMBER,
            alarm=1,
        ),
        Panel(
            "Restarts in a row",
            "How often the driver that is worst off was restarted without recovering: JobRestarting.",
            "max(adloom_job_restarts) or vector(0)",
            "none",
            Kind.NUMBER,
            alarm=2,
        ),
        Panel(
            "Restarts in a day",
            "How often queries were started again in the last 24 hours, deployments included.",
            "sum(changes(adloom_query_start_time_seconds[1d])) or vector(0)",
            "none",
            Kind.NUMBER,
        ),
        Panel(
            "Which alerts fire",
            "Name, severity, job and query of each alert that fires.",
            'sum by (alertname, severity, job, query, account) (ALERTS{alertstate="firing"})',
            "none",
            Kind.TABLE,
            legend="firing",
        ),
        Panel(
            "Which queries run",
            "Green while a query runs, red once it has ended; a gap where its driver does not answer.",
            'max by (query) (adloom_query_up{query=~"$query"})',
            "none",
            Kind.STATES,
            legend="{{query}}",
        ),
    ),
)
_RATES = Section(
    "Rates",
    (
        Panel(
            "Rows read",
            "Rows per second that a query reads; a join reads a row once per side.",
            'sum by (query) (rate(adloom_input_rows_total{query=~"$query"}[$__rate_interval]))',
            "rowsps",
            legend="{{query}}",
        ),
        Panel(
            "Rows a batch could read",
            "Rows per second within the latest batch. If Rows read comes close, add cores: docs/scaling.md.",
            'max by (query) (adloom_processed_rows_per_second{query=~"$query"})',
            "rowsps",
            legend="{{query}}",
        ),
        Panel(
            "Time of a batch",
            "How long the latest batch took. Airflow's page Streams shows what in it took long.",
            'max by (query) (adloom_batch_duration_seconds{query=~"$query"})',
            "s",
            legend="{{query}}",
        ),
        Panel(
            "Rows of a batch",
            "Rows that the latest batch read; 0 while there is nothing to read.",
            'max by (query) (adloom_batch_input_rows{query=~"$query"})',
            "short",
            legend="{{query}}",
        ),
    ),
)
_LAG = Section(
    "Lag and backlog",
    (
        Panel(
            "Behind what the settings allow",
            "How much further a watermark lies behind the present than the settings of the query let it. An hour and "
            "more raises WatermarkBehind. It also grows while no events arrive.",
            'max by (query) (adloom_watermark_lag_seconds{query=~"$query"} - '
            'adloom_watermark_delay_seconds{query=~"$query"})',
            "s",
            legend="{{query}}",
            alarm=3600,
        ),
        Panel(
            "Since its last report",
            "How long ago a query finished a batch, or a task of one, or found nothing to do.",
            'max by (query) (time() - adloom_query_last_seen_seconds{query=~"$query"})',
            "s",
            legend="{{query}}",
            alarm=600,
        ),
        Panel(
            "Backlog in Kafka",
            "Records that have arrived and are not read yet. BacklogGrowing looks at more than 100,000 that grow.",
            'max by (query) (adloom_backlog_records{query=~"$query"})',
            "short",
            legend="{{query}}",
            alarm=100_000,
        ),
        Panel(
            "Backlog in files and tables",
            "Bytes that are there and not read yet.",
            'max by (query) (adloom_backlog_bytes{query=~"$query"})',
            "bytes",
            legend="{{query}}",
        ),
    ),
)
_STATE = Section(
    "State",
    (
        Panel(
            "Rows in state",
            "Rows that a query keeps. They follow the traffic; if they only grow, a watermark stands still.",
            'max by (query) (adloom_state_rows{query=~"$query"})',
            "short",
            legend="{{query}}",
        ),
        Panel(
            "Memory of state",
            "Memory of the state stores. `adloom state summary` has the rest: files, oldest entry, skew.",
            'max by (query) (adloom_state_bytes{query=~"$query"})',
            "bytes",
            legend="{{query}}",
        ),
    ),
)
_LOSSES = Section(
    "Late rows and restarts",
    (
        Panel(
            "Late rows",
            "Rows that a query dropped as late in 15 minutes. `adloom repair` brings them to gold.",
            'sum by (query) (increase(adloom_late_rows_total{query=~"$query"}[15m]))',
            "short",
            legend="{{query}}",
        ),
        Panel(
            "Share of late rows",
            "Late rows among the rows read in 15 minutes. More than 1 % raises LateRowsRising.",
            'sum by (query) (increase(adloom_late_rows_total{query=~"$query"}[15m])) / '
            'sum by (query) (increase(adloom_input_rows_total{query=~"$query"}[15m]))',
            "percentunit",
            legend="{{query}}",
            alarm=0.01,
        ),
        Panel(
            "Restarts in an hour",
            "How often a query was started again in the hour before. Deployments start each query once.",
            'sum by (query) (changes(adloom_query_start_time_seconds{query=~"$query"}[1h]))',
            "none",
            legend="{{query}}",
        ),
        Panel(
            "Running for",
            "Time since a query was started; it falls to zero with each restart.",
            'max by (query) (time() - adloom_query_start_time_seconds{query=~"$query"})',
            "s",
            legend="{{query}}",
        ),
    ),
)
OPERATIONS = Dashboard(
    "operations",
    "adloom: operations",
    "Is everything running, and does it keep up? Rates, lag, backlog, state, late rows and restarts, by query.",
    (_NOW, _RATES, _LAG, _STATE, _LOSSES),
    by_query=True,
)
