"""With a Delta that lacks an internal method, rows are still appended, each batch once, by its public writer."""

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from spark_jobs.spark.jars.ready import jars_folder

_METHOD, _RENAMED = b"readTxn", b"readTxs"
_CHILD = """
import json, logging, sys
from pathlib import Path
from spark_jobs.lake.notes import CommitNote
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SESSIONS
from spark_jobs.spark import conf, session
from spark_jobs.spark.java import Lifetime
from spark_jobs.lake.open import open_lake
from spark_jobs.spark.write_delta import append_rows
from tests.expectations.good_rows import frame, good_rows

logging.basicConfig(level=logging.WARNING, format="%(message)s")
conf.jars_folder = lambda: Path(sys.argv[1])
spark = session.start_session(Settings(), lifetime=Lifetime.SHORT)
lake = open_lake(sys.argv[2])
rows = frame(spark, SESSIONS.name, good_rows(SESSIONS.name)).coalesce(1)
for batch in (0, 1, 1, 2, 0):
    append_rows(rows, lake, SESSIONS, CommitNote(writer="w", batch=batch, query=SESSIONIZE, reached=[batch]))
print(json.dumps([rows.count(), spark.read.format("delta").load(lake.table(SESSIONS)).count()]))
spark.stop()
"""


def _jars_of_another_delta(folder: Path) -> Path:
    """The jars, with a method of Delta renamed wherever it is defined or called."""
    folder.mkdir()
    for jar in jars_folder().glob("*.jar"):
        if not jar.name.startswith("delta-spark_"):
            (folder / jar.name).symlink_to(jar)
            continue
        with ZipFile(jar) as old, ZipFile(folder / jar.name, "w") as new:
            for entry in old.infolist():
                content = old.read(entry)
                new.writestr(
                    entry, content.replace(_METHOD, _RENAMED) if entry.filename.endswith(".class") else content
                )
    return folder


@pytest.mark.slow
def test_another_delta_appends_by_its_public_writer_and_one_warning_says_so(tmp_path: Path) -> None:
    jars = _jars_of_another_delta(tmp_path / "jars")
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(jars), str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert child.returncode == 0, child.stderr
    once, found = json.loads(child.stdout.splitlines()[-1])
    assert found == 3 * once
    assert child.stderr.count("this Delta has no org.apache.spark.sql.delta.OptimisticTransaction.readTxn()") == 1
