"""Where rows go: the only modules that call ``writeStream``."""
