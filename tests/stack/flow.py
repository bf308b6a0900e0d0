"""Records into a topic, and waiting for the rows they become."""

import subprocess
from collections.abc import Sequence

from spark_jobs.contracts.sections import KafkaSettings
from spark_jobs.contracts.tables import BRONZE_EVENTS
from spark_jobs.generator.publish import publish
from spark_jobs.lake.layout import Lake
from tests.stack.jobs import LONGEST_S
from tests.stack.kafka import Kafka
from tests.support.drivers import ADLOOM
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


def adloom(*arguments: str) -> None:
    """Runs a command of adloom, which must end well."""
    done = subprocess.run([*ADLOOM, *arguments], capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
