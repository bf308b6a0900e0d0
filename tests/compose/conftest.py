"""The stack: started for the tests that share it, stopped after them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.compose.stack import Stack, has_engine
from tests.support.receiver import Receiver, gateway, receiving


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    check_engine()
    with receiving(gateway()) as own:
        yield own


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Stack]:
    settings = {"ALERT_URL": receiver.url}
    with running(Stack(tmp_path_factory.mktemp("stack"), f"adloom-test-{os.getpid()}", settings)) as own:
        yield own


@contextmanager
def running(own: Stack) -> Iterator[Stack]:
    """``own``, started and with its lake open; stopped afterwards, with nothing left."""
    check_engine()
    try:
        printed = own.up()
        assert own.address in printed
        assert own.kafka.bootstrap_servers in printed
        own.wait_for_dags()
        own.pause_changing()
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                patch.delenv(name)
            key, secret = own.store_keys
            patch.setenv("AWS_ACCESS_KEY_ID", key)
            patch.setenv("AWS_SECRET_ACCESS_KEY", secret)
            own.lake = own.open_lake()
            yield own
    finally:
        _keep_logs(own)
        own.down()
        assert own.left() == []


def check_engine() -> None:
    """Fails if no Docker engine answers."""
    assert has_engine(), "no Docker engine answers: start one (`docker info` must work)"


def _keep_logs(own: Stack) -> None:
    """The logs of the containers go to the folder in `LOGS`, to look into a failure."""
    if folder := os.environ.get("LOGS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{own.name}.log").write_text(own.compose("logs", "--no-color", "--timestamps"))
