"""Drivers that run on a cluster: what they are called there."""

import hashlib


def application_name(root: str, job: str) -> str:
    """What the driver of ``job`` on the lake at ``root`` is called: alike for all who ask, and no other is."""
    return f"adloom-{job}-{hashlib.sha256(root.encode()).hexdigest()[:8]}"
