"""Names of drivers that run on a cluster."""

import hashlib


def application_name(root: str, job: str) -> str:
    """Name of the driver of ``job`` on the lake at ``root``: deterministic, and unique per job and lake."""
    return f"adloom-{job}-{hashlib.sha256(root.encode()).hexdigest()[:8]}"
