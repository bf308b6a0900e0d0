"""The columns of bronze that say where a record comes from.

The column ``source`` has where it was found, as ``t/0/5`` or ``file:///f.csv#row=7``.

If a record holds several events, it ends as in ``t/0/5[2]`` or ``t/0/5[2]+clicks``: the first part is the number of the
element in a list, and if that is a list within a list, its number there; the second is the name of a source that takes
the record of another one, too.
"""

from typing import Final

IN_RECORD: Final = r"(\[[0-9]+\])*(\+[a-z][a-z0-9_]*)?$"
FURTHER: Final = r"(\[[1-9][0-9]*\](\[[0-9]+\])*|\+[a-z][a-z0-9_]*)$"
"""Of an event that is not the first one of its record."""
IN_FILE: Final = r"#[a-z]+=[0-9a-z-]*\z"
"""The place within a file; a name of a file may hold the character, too."""
IN_TOPIC: Final = r"^([a-zA-Z0-9._-]+)/([0-9]+)/([0-9]+)$"
"""A topic, partition and offset. Topics have no slash and no colon in their names, and addresses of files have."""
RECEIVED_META: Final = "received_meta"
"""The column with the metadata of a record: what is known of it besides its value, as JSON."""
META: Final = "meta"
"""The root of paths into it, ``$meta.key``."""
META_KEYS: Final = ("topic", "partition", "offset", "key", "headers", "time", "file")
"""Its keys: a record of a topic all but the last, of one of a file the last."""
