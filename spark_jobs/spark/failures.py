"""Why a streaming query failed, in one line."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.errors import QueryFailedError

_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]{5,}\][^\n]{0,400}")
_RAISED = re.compile(r"^(?:: )?([\w.$]*(?:Error|Exception): [^\n]{1,400})", re.MULTILINE)
_LOST = re.compile(r"Some data may have been lost[\s\S]{1,600}?Reason: ([^\n]{1,300})")
_FULL = re.compile(r"[^\n]{0,300}No space left on device")
_ROOT = re.compile(r"^Caused by: (?:[\w$]+\.)*([^\n]{1,400})", re.MULTILINE)
_GENERIC = ("[STREAM_FAILED]", "[FOREACH_BATCH_USER_FUNCTION_ERROR]")
_BRIDGES = ("Python Proxy", "An error occurred while calling")


@contextmanager
def naming_the_cause(queries: Callable[[], list[StreamingQuery]]) -> Iterator[None]:
    """Replaces a query's exception by one line that says which query failed first, and why.

    Raises:
        QueryFailedError: a query failed inside the block.
    """
    try:
        yield
    except StreamingQueryException as error:
        # When a query fails, those waiting for it fail too, and their text contains the text of the first.
        failed = {query.name: query.exception() for query in queries()}
        texts = {name: str(failure) for name, failure in failed.items() if failure}
        name, text = min(texts.items(), key=lambda item: len(item[1]), default=("", str(error)))
        log = "spark.log has the details"
        raise QueryFailedError(f"query {name} failed: {reason(text)}; {log}") from error
    except (Py4JJavaError, PySparkException) as error:
        raise QueryFailedError(f"Spark failed: {reason(str(error))}; spark.log has the details") from error


def reason(text: str) -> str:
    """The cause given in ``text``, the exception of a query, in one line.

    If Kafka lost records or a disk is full: that, and what to do. Otherwise Spark's error conditions (without the
    generic ones), the first exception, or the first line; then the root cause.
    """
    if lost := _LOST.search(text):
        return (
            f"records are gone from Kafka before they were read ({lost[1]}): retention or a deleted topic took them; "
            "set kafka.fail_on_data_loss to false to continue without them"
        )
    if full := _FULL.search(text):
        return (
            f"a disk is full ({_message_of(full[0])}): free some space and start again, nothing is lost; state and "
            "shuffle files are in SPARK_LOCAL_DIRS, or by default in the folder for temporary files"
        )
    conditions = [found for found in _CONDITION.findall(text) if not found.startswith(_GENERIC)]
    raised = [found for found in _RAISED.findall(text) if not any(bridge in found for bridge in _BRIDGES)]
    cause = " ".join(dict.fromkeys(conditions[:3])) or (raised or text.strip().splitlines())[0].strip()
    roots = _ROOT.findall(text)
    return cause if not roots or roots[-1][:60] in cause else f"{cause} (cause: {roots[-1].strip()})"


def _message_of(line: str) -> str:
    """The exception's own message at the end of ``line``, without the class names before it."""
    return re.sub(r"^.*(?:Error|Exception): ", "", line.strip())
