"""Launchers, which run the drivers: supervisord on this machine, or a cluster."""

from ad_dags.drivers.launchers.launcher import Driver, DriverState, Launcher, LauncherError

__all__ = ["Driver", "DriverState", "Launcher", "LauncherError"]
