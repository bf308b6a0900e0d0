"""A lake on disk or in an object store: files, tables, logs and locks. It knows no query, and no Spark."""
