"""Output: the only modules that call ``writeStream``."""
