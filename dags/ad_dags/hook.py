"""The path of the hook before 0.1.0, for DAG files that import it from here; remove it after 0.1."""

from ad_dags.connection.hook import AdloomHook

__all__ = ["AdloomHook"]
