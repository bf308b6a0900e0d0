"""Spark's own names for what queries and the session choose."""

import hashlib

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
STATE_VALUE = "known"
"""Name of the value that a state function keeps for each key."""
KEYED_STATE_CONF = {
    # Spark keeps the state of these functions in RocksDB only.
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # State to which a field is added later can still be read.
    "spark.sql.streaming.stateStore.encodingFormat": "avro",
}
"""The configuration that a query with a state function in Python needs."""
UNCOUNTED_STATE_CONF = {"spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false"}
"""With this a query does not know how many rows its state has: counting looks up each row that is put or removed."""


def application_name(root: str, job: str) -> str:
    """Name of the driver of ``job`` on the lake at ``root``: deterministic, and unique per job and lake."""
    return f"adloom-{job}-{hashlib.sha256(root.encode()).hexdigest()[:8]}"
