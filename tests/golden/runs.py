"""The runs that the golden cases share; each is one run of the pipeline."""

from datetime import timedelta

from spark_jobs.config.choices import JoinState
from spark_jobs.config.sections import IngestSettings, SessionizeSettings, SparkSettings
from spark_jobs.config.settings import Settings
from tests.support.lateness import PATIENT
from tests.support.runs import ONE_BY_ONE
from tests.support.timeline import Run

_FILE_BY_FILE = IngestSettings.model_validate(ONE_BY_ONE)

STANDARD = Run(
    "standard",
    # Arrival is disordered by more than the default session watermark: order of arrival must not matter below it.
    Settings.model_validate({"ingest": _FILE_BY_FILE, "sessionize": {"watermark": "3h"}, **PATIENT}),
    measure=True,
)
"""Everything between 11:00 and 14:00, so that nothing is late whatever the order of arrival."""

LATE = Run(
    "late",
    STANDARD.settings.model_copy(
        update={
            "attribute": STANDARD.settings.attribute.model_copy(update={"tolerance": timedelta(seconds=2)}),
            "sessionize": STANDARD.settings.sessionize.model_copy(update={"longest": timedelta(minutes=30)}),
        }
    ),
)
"""The newest time of the first file, 16:00:00.000999, lays the watermark of the third one at 13:00."""

UNDRAINED = Run(
    "undrained",
    Settings(
        ingest=_FILE_BY_FILE,
        sessionize=SessionizeSettings(longest=timedelta(hours=1)),
        spark=SparkSettings(join_state=JoinState.BY_KEY),
    ),
    drain=False,
)
"""Time reaches 17:00: the join's watermark 14:00 (3 h behind), the sessions' 16:50 (10 min behind)."""

RUNS = (STANDARD, LATE, UNDRAINED)
