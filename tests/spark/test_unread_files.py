"""Which files a run has read, by the notes of Spark's source, whatever they are called and wherever they lie."""

from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.ingest.files_read import FilesRead
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.ingest.unread_files import UnreadFiles
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_in_use, checkpoint_key
from tests.support.equality import generate_source
from tests.support.runs import run_in


def test_files_that_were_read_are_known_by_their_place_and_may_be_moved_away(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = generate_source(tmp_path / "source", events=300, seed=1, files=3)
    first, second, third = sorted(source.iterdir())
    first.rename(source / "a b%41+#\u00e9.jsonl")
    elsewhere = second.rename(tmp_path / "elsewhere.jsonl")
    second.symlink_to(elsewhere)
    settings, lake = Settings.model_validate({"ingest": {"max_bytes_per_batch": 1}}), open_lake(str(tmp_path / "lake"))
    unread = UnreadFiles(settings, source)
    assert {Path(name) for name in unread.first_events(set())} == set(source.iterdir())
    run_in(spark, settings, lake, source, drain=False)
    note = last_note(lake, INGEST)
    assert note
    read = FilesRead(lake, checkpoint_key(INGEST, checkpoint_in_use(lake, INGEST))).until(note.reached)
    assert set(read) == {f"{source.resolve()}/{file.name}" for file in source.iterdir()}
    assert unread.first_events(read) == {}
    third.unlink()
    for file in list(source.iterdir()):
        file.unlink()
    assert unread.first_events(read) == {}, "a folder may be emptied while a job reads it"
