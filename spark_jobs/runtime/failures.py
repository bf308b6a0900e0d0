"""What made a streaming query fail, in one line."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.errors import QueryFailedError

_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]{5,}\][^\n]{0,400}")
_SAY_NOTHING = ("[STREAM_FAILED]", "[FOREACH_BATCH_USER_FUNCTION_ERROR]")


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
        log = "spark.log in the lake's _progress folder has all of it"
        raise QueryFailedError(f"query {name} failed: {reason(text)}; {log}") from error


def reason(text: str) -> str:
    """The error conditions that Spark names in ``text``, without those that only say that there is one; one line."""
    conditions = [found for found in _CONDITION.findall(text) if not found.startswith(_SAY_NOTHING)]
    return " ".join(dict.fromkeys(conditions[:3])) or text.strip().splitlines()[0]
