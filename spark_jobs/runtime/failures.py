"""What made a streaming query fail, in one line."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.errors import QueryFailedError

_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]{5,}\][^\n]{0,400}")
_RAISED = re.compile(r"^(?:: )?([\w.$]*(?:Error|Exception): [^\n]{1,400})", re.MULTILINE)
_LOST = re.compile(r"Some data may have been lost[\s\S]{1,600}?Reason: ([^\n]{1,300})")
_FULL = re.compile(r"[^\n]{0,300}No space left on device")
_ROOT = re.compile(r"^Caused by: (?:[\w$]+\.)*([^\n]{1,400})", re.MULTILINE)
_SAY_NOTHING = ("[STREAM_FAILED]", "[FOREACH_BATCH_USER_FUNCTION_ERROR]")
_BRIDGES = ("Python Proxy", "An error occurred while calling")


@contextmanager
def naming_the_cause(queries: Callable[[], list[StreamingQuery]]) -> Iterator[None]:
    """Makes the exception of a query the one line that says which query failed first, and why.

    Raises:
        QueryFailedError: a query ended with an error inside.
    """
    try:
        yield
    except StreamingQueryException as error:
        # When a query fails, those that wait for it fail too: their text holds the text of the first.
        failed = {query.name: query.exception() for query in queries()}
        texts = {name: str(failure) for name, failure in failed.items() if failure}
        name, text = min(texts.items(), key=lambda item: len(item[1]), default=("", str(error)))
        log = "spark.log has all of it"
        raise QueryFailedError(f"query {name} failed: {reason(text)}; {log}") from error
    except (Py4JJavaError, PySparkException) as error:
        raise QueryFailedError(f"Spark failed: {reason(str(error))}; spark.log has all of it") from error


def reason(text: str) -> str:
    """What ``text``, of the exception of a query, gives as its cause, in one line.

    Where Kafka lost records or a disk is full: that, and what to do. Else the error conditions that Spark names (not
    those that only say that there is one), the first exception, or the first line; and what caused the last one.
    """
    if lost := _LOST.search(text):
        return (
            f"records are gone from Kafka that were not read yet ({lost[1]}): retention or a deleted topic took them; "
            "set kafka.fail_on_data_loss to false to go on without them"
        )
    if full := _FULL.search(text):
        return (
            f"a disk is full ({_last_words(full[0])}): make room and start again, nothing is lost; state and shuffles "
            "lie below SPARK_LOCAL_DIRS, or else in the folder for temporary files"
        )
    conditions = [found for found in _CONDITION.findall(text) if not found.startswith(_SAY_NOTHING)]
    raised = [found for found in _RAISED.findall(text) if not any(bridge in found for bridge in _BRIDGES)]
    told = " ".join(dict.fromkeys(conditions[:3])) or (raised or text.strip().splitlines())[0].strip()
    roots = _ROOT.findall(text)
    return told if not roots or roots[-1][:60] in told else f"{told} (cause: {roots[-1].strip()})"


def _last_words(line: str) -> str:
    """The end of ``line``: the exception's own message, without the names of the classes before it."""
    return re.sub(r"^.*(?:Error|Exception): ", "", line.strip())
