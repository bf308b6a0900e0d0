"""Where everything lies under a lake's root, as far as it needs no query: keys, relative to the root."""

CHECKPOINTS = "_checkpoints"
PROGRESS = "_progress"
"""Folder with one folder per job, which holds a progress file per query."""
INITIAL = "_initial"
"""Folder of the initial states that queries started with: a table per query."""
LEDGER = f"{PROGRESS}/ledger.json"
"""The ledger of the latest run, as JSON."""
LEDGER_REACHED = f"{PROGRESS}/ledger_reached.json"
"""By query, the last batch that the ledger includes, as JSON."""
REPORTS = "_reports"
"""Folder of the validation reports; open ``index.html``."""
OVERVIEW = f"{REPORTS}/overview.html"
"""The page of charts."""
VALIDATED = f"{REPORTS}/validated.json"
"""By table, the last version that passed validation, as JSON."""
FEED = "_feeds/campaign_stats.json"
"""The newest windows of gold/campaign_stats, as JSON."""


def lock_key(job: str) -> str:
    """Held by the process that runs ``job``."""
    return f"{PROGRESS}/{job}/driver.lock"
