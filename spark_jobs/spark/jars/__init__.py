"""The jars that drivers load: locked, downloaded and compiled."""
