"""Reducing a query's exception to one line."""

import pytest

from spark_jobs.spark.failures import reason

_LOST = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
pyspark.errors.exceptions.captured.Unknown: Some data may have been lost because they are not available in Kafka any
more; either the data was aged out by Kafka or the topic may have been deleted before all the data in the
topic was processed.
Reason: Could not read records in offset [501, 1106) for topic partition events-1
"""
_RAISED = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "delta.py", line 3, in write
OSError: [Errno 28] No space left on device
"""
_FULL_UNDER_STATE = """[STREAM_FAILED] Query terminated. Traceback (most recent call last):
SparkException: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store files.
Caused by: org.rocksdb.RocksDBException: While appending to file: /tmp/x/000009.sst: No space left on device
\tat org.rocksdb.RocksDB.flush(Native Method)
"""
_CAUSED = """py4j.protocol.Py4JJavaError: An error occurred while calling o1241.save.
: org.apache.spark.SparkException: Job aborted
\tat x.y.Z
Caused by: java.lang.IllegalStateException: between
Caused by: java.net.ConnectException: Connection refused
"""
_CONDITIONS = """[STREAM_FAILED] Query terminated. [FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred.
org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file part-0.parquet.
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(_LOST, "records are gone from Kafka before they were read (Could not read records in", id="lost"),
        pytest.param(_RAISED, "a disk is full ([Errno 28] No space left on device): ", id="full"),
        pytest.param(_FULL_UNDER_STATE, "a disk is full (While appending to file: /tmp/x", id="state"),
        pytest.param(_CAUSED, "org.apache.spark.SparkException: Job aborted (cause: ConnectException: C", id="caused"),
        pytest.param(_CONDITIONS, "[FAILED_READ_FILE.NO_HINT] Encountered error while reading", id="conditions"),
        pytest.param("out of luck\nand more", "out of luck", id="first-line"),
    ],
)
def test_the_reason_is_one_line_that_names_the_cause(text: str, expected: str) -> None:
    assert reason(text).startswith(expected)
    assert "\n" not in reason(text)
