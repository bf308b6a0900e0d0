"""Records into a topic, and waiting for the rows they become."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.config.sections import KafkaSettings, S3Settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.generator.publish import publish
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.stack.jobs import LONGEST_S
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio
from tests.support.drivers import ADLOOM
from tests.support.equality import generate_source
from tests.support.lakes import read_table
from tests.support.servers import wait_until


def send(kafka: Kafka, topic: str, records: Sequence[bytes]) -> None:
    """Sends ``records`` as they are, as fast as it goes."""
    settings = KafkaSettings(bootstrap_servers=kafka.address, topics=(topic,))
    sent = publish(records, settings, rate=None, is_live=False)
    assert sent.records == len(records)


def wait_for_rows(lake: Lake, rows: int, seconds: float = LONGEST_S) -> None:
    """Returns when bronze holds so many rows."""
    wait_until(lambda: len(read_table(lake, BRONZE_EVENTS)) == rows, seconds, f"bronze never had {rows} rows")


def lake_of_analyst(location: str, user: str, minio: Minio, folder: Path) -> Lake:
    """A drained lake in ``minio``, made of files in ``folder``, whose gold ``user`` may read and nothing else."""
    source = generate_source(folder / "source", events=2000, seed=23)
    adloom("run", "--lake", location, "--source", str(source), "--drain")
    adloom("init", "--lake", location, "--user", user, "--role", "analyst")
    return open_lake(location, S3Settings(endpoint=minio.endpoint))


def adloom(*arguments: str) -> None:
    """Runs a command of adloom, which must end well."""
    done = subprocess.run([*ADLOOM, *arguments], capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
