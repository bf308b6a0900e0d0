"""adloom's Spark jobs: ad events in, deduplicated, joined and sessionized Delta tables out."""

__version__ = "0.1.0"
