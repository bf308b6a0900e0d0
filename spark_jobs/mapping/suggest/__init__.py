"""A draft of ``[source.NAME]`` from a sample of records: what the records hold, and what of it is which field.

:mod:`profile` reads the sample and knows nothing of events. :mod:`event_types` and :mod:`candidates` choose from the
profile. :mod:`draft` holds what was chosen and why, and :mod:`toml_text` writes it. No Spark, no IO.
"""

from spark_jobs.mapping.suggest.candidates import list_of, lists_of_objects, suggest, suggest_for_elements
from spark_jobs.mapping.suggest.draft import Draft, Shape
from spark_jobs.mapping.suggest.profile import NoRecordsError, Profile, profile_of
from spark_jobs.mapping.suggest.toml_text import as_toml

__all__ = [
    "Draft",
    "NoRecordsError",
    "Profile",
    "Shape",
    "as_toml",
    "list_of",
    "lists_of_objects",
    "profile_of",
    "suggest",
    "suggest_for_elements",
]
