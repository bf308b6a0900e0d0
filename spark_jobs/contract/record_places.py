"""The end of the column ``source`` in bronze, if a record holds several events: ``t/0/5[2]``, ``t/0/5[2]+clicks``.

The first part is the number of the element in a list, and if that is a list within a list, its number there; the second
is the name of a source that takes the record of another one, too.
"""

from typing import Final

IN_RECORD: Final = r"(\[[0-9]+\])*(\+[a-z][a-z0-9_]*)?$"
FURTHER: Final = r"(\[[1-9][0-9]*\](\[[0-9]+\])*|\+[a-z][a-z0-9_]*)$"
"""Of an event that is not the first one of its record."""
