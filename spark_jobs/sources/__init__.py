"""Where rows come from: the only modules that call ``readStream``."""
