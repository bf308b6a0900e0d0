"""Deploying: on a real lake, with real releases and a launcher that only records its calls."""

import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ad_dags import commands
from ad_dags.commands import CommandError
from ad_dags.connection import lake_connection
from ad_dags.connection.lake_connection import LakeConnection, connect_started
from ad_dags.dags import deploy_streams
from ad_dags.dags.deploy_streams import FROM_CHECKOUT, build, check, jobs_of, swap
from ad_dags.drivers import compatibility, job_control
from ad_dags.drivers import swap as swapping
from ad_dags.drivers.launchers import Driver, DriverState
from ad_dags.drivers.supervision.rules import Limits
from ad_dags.drivers.swap import DeployAction, DeployError
from spark_jobs.cli import driver as driving
from spark_jobs.config.durations import format_duration
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.errors import CheckpointError, ContractError, LakeError, SettingsError
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.releases import read_deployment
from spark_jobs.places import CHECKPOINTS
from spark_jobs.queries.places import progress_key
from spark_jobs.streams.desired_state import RunState, desired_key, read_desired, set_desired
from spark_jobs.streams.reports import QueryReport, QueryState, read_report
from tests.dags.fakes import LAKE, RecordingLauncher
from tests.support.releases import publish_fake

_OLD, _NEW = "1.0.0", "1.0.1"


class _Drivers(RecordingLauncher):
    """Drivers whose queries complete a batch as soon as they start, or fail, depending on the release."""

    connection: LakeConnection
    bad_releases: tuple[str, ...] = ()
    first_batch: str = "done at once"

    def inspect(self, job: str) -> Driver:
        report = read_report(self.connection.lake, "ingest")
        if report and self.first_batch != "done at once":
            done = report.tasks_done + (self.first_batch == "goes on")
            report = report.model_copy(update={"busy_since": report.started_at, "tasks_done": done})
            self.connection.lake.files.write(progress_key("ingest"), report.model_dump_json().encode())
        return super().inspect(job)

    def start(self, job: str) -> None:
        super().start(job)
        deployment = read_deployment(self.connection.lake, job)
        assert deployment
        self.calls[-1] += f" {deployment.version}"
        now = datetime.now(UTC)
        is_bad = deployment.version in self.bad_releases
        report = QueryReport(
            job=job,
            query="ingest",
            version=deployment.version,
            process_id=1,
            started_at=now,
            updated_at=now + timedelta(seconds=1),
            state=QueryState.FAILED if is_bad else QueryState.RUNNING,
            last_error="out of luck" if is_bad else None,
        )
        self.connection.lake.files.write(progress_key("ingest"), report.model_dump_json().encode())


@pytest.fixture
def drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Drivers:
    launcher = _Drivers()
    lake = open_lake(str(tmp_path / "lake"))
    launcher.connection = LakeConnection(str(tmp_path / "lake"), None, Settings(), lake, launcher)
    monkeypatch.setattr(deploy_streams, "connect", lambda *_: launcher.connection)
    monkeypatch.setattr(swapping, "_POLL_S", 0.01)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for version in (_OLD, _NEW):
        publish_fake(lake, tmp_path, version)
    return launcher


def _form(action: DeployAction, **changed: Any) -> dict[str, Any]:
    return {
        "job": "deduplicate",
        "action": action.value,
        "release": _NEW,
        "confirm_reset": False,
        "confirm_breaking": False,
        **changed,
    }


_SAME_CONTRACT = json.dumps(
    {"changes": [], "version": {"before": "1.0", "now": "1.0", "level": "ok", "why": "the contracts promise the same"}}
)


def _preflight(changes: list[dict[str, str]]) -> Callable[..., tuple[int, str]]:
    def run(_connection: LakeConnection, command: list[str], *_: object, **__: object) -> tuple[int, str]:
        return (1, f"a warning\n{json.dumps(changes)}") if command == ["preflight"] else (0, _SAME_CONTRACT)

    return run


def test_upstream_jobs_are_started_first_and_stopped_last() -> None:
    assert jobs_of(LAKE, _form(DeployAction.START, job="all")) == ["deduplicate", "attribute", "measure"]
    assert jobs_of(LAKE, _form(DeployAction.STOP, job="all")) == ["measure", "attribute", "deduplicate"]
    assert jobs_of(LAKE, _form(DeployAction.START, job="attribute")) == ["attribute"]


def test_all_starts_the_jobs_of_this_place_and_stops_whatever_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADLOOM_JOBS", "attribute, deduplicate")
    assert jobs_of(LAKE, _form(DeployAction.START, job="all")) == ["deduplicate", "attribute"]
    assert jobs_of(LAKE, _form(DeployAction.STOP, job="all")) == ["measure", "attribute", "deduplicate"]
    assert jobs_of(LAKE, _form(DeployAction.START, job="measure")) == ["measure"]
    monkeypatch.setenv("ADLOOM_JOBS", "attribute,measures")
    with pytest.raises(SettingsError, match="ADLOOM_JOBS names 'measures'; there are deduplicate, attribute, measure"):
        jobs_of(LAKE, _form(DeployAction.START, job="all"))


def test_a_release_that_does_not_exist_is_not_deployed(drivers: _Drivers) -> None:
    assert build(LAKE, _form(DeployAction.START)) == _NEW
    with pytest.raises(LakeError, match="has no release"):
        build(LAKE, _form(DeployAction.START, release="9.9.9"))
    assert build(LAKE, _form(DeployAction.STOP, release="9.9.9")) == ""
    assert drivers.calls == []


def test_a_first_release_is_started(drivers: _Drivers) -> None:
    assert swap(LAKE, _NEW, [], _form(DeployAction.START)) == ["deduplicate: release 1.0.1 is running"]
    assert drivers.calls[-1] == "start deduplicate 1.0.1"
    wanted = read_desired(drivers.connection.lake, "deduplicate")
    assert wanted
    assert (wanted.state, wanted.until) == ("running", None)


def test_a_running_release_is_left_alone_by_start_and_not_by_restart(drivers: _Drivers) -> None:
    swap(LAKE, _NEW, [], _form(DeployAction.START))
    drivers.calls.clear()
    assert swap(LAKE, _NEW, [], _form(DeployAction.START)) == ["deduplicate: release 1.0.1 is already running"]
    assert drivers.calls == []
    swap(LAKE, _NEW, [], _form(DeployAction.RESTART))
    assert drivers.calls == ["stop deduplicate", "start deduplicate 1.0.1"]


def test_a_release_that_does_not_work_is_replaced_by_the_previous_one(drivers: _Drivers) -> None:
    swap(LAKE, _OLD, [], _form(DeployAction.START))
    drivers.calls.clear()
    drivers.bad_releases = (_NEW,)
    why = r"release 1\.0\.1 does not work: query ingest failed: out of luck; release 1\.0\.0 was started again"
    with pytest.raises(DeployError, match=why):
        swap(LAKE, _NEW, [], _form(DeployAction.RESTART))
    assert [call for call in drivers.calls if call.startswith("start")] == [
        "start deduplicate 1.0.1",
        "start deduplicate 1.0.0",
    ]
    assert drivers.state is DriverState.RUNNING
    deployment = read_deployment(drivers.connection.lake, "deduplicate")
    assert deployment
    assert (deployment.version, deployment.previous) == (_OLD, None), "a rollback would lead to the bad release"


def test_a_first_release_that_does_not_work_is_stopped(drivers: _Drivers) -> None:
    drivers.is_broken = True
    with pytest.raises(DeployError, match=r"its driver has failed \(the reason\); there is no previous release"):
        swap(LAKE, _NEW, [], _form(DeployAction.START))
    wanted = read_desired(drivers.connection.lake, "deduplicate")
    assert wanted
    assert wanted.state == "stopped"


@pytest.mark.parametrize("first_batch", ["goes on", "hangs"])
def test_a_first_batch_may_take_long_as_long_as_its_tasks_end(drivers: _Drivers, first_batch: str) -> None:
    drivers.first_batch = first_batch
    limits = Limits(first_batch=timedelta(seconds=0.5), good_after=timedelta(seconds=1)).numbers()
    form = _form(DeployAction.START)
    if first_batch == "goes on":
        assert swap(LAKE, _NEW, [], form, limits) == ["deduplicate: release 1.0.1 is running"]
    else:
        with pytest.raises(DeployError, match=r"its first batches made no progress for 0:00:00\.5"):
            swap(LAKE, _NEW, [], form, limits)


def test_a_deployment_waits_until_a_pause_is_over(drivers: _Drivers) -> None:
    """Before, it took over the pause of maintenance, whose lock then refused the driver."""
    lake, now = drivers.connection.lake, datetime.now(UTC)
    set_desired(lake, "deduplicate", RunState.STOPPED, "table maintenance", now, until=now + timedelta(hours=1))

    def resume() -> None:
        assert drivers.calls == []
        set_desired(lake, "deduplicate", RunState.RUNNING, "its pause is over", datetime.now(UTC))

    timer = threading.Timer(1, resume)
    timer.start()
    assert swap(LAKE, _NEW, [], _form(DeployAction.START)) == ["deduplicate: release 1.0.1 is running"]
    timer.join()
    assert "start deduplicate 1.0.1" in drivers.calls


def test_a_deployment_starts_a_job_that_has_failed(drivers: _Drivers) -> None:
    lake = drivers.connection.lake
    set_desired(lake, "deduplicate", RunState.FAILED, "it has ended again", datetime.now(UTC))
    swap(LAKE, _NEW, [], _form(DeployAction.START))
    wanted = read_desired(lake, "deduplicate")
    assert wanted
    assert wanted.state is RunState.RUNNING


def test_a_rollback_returns_to_the_previous_release(drivers: _Drivers) -> None:
    swap(LAKE, _OLD, [], _form(DeployAction.START))
    with pytest.raises(LakeError, match="has no earlier release"):
        swap(LAKE, "", [], _form(DeployAction.ROLLBACK))
    swap(LAKE, _NEW, [], _form(DeployAction.RESTART))
    assert swap(LAKE, "", [], _form(DeployAction.ROLLBACK)) == ["deduplicate: release 1.0.0 is running"]
    assert drivers.calls[-1] == "start deduplicate 1.0.0"


def test_a_stop_is_remembered(drivers: _Drivers) -> None:
    swap(LAKE, _NEW, [], _form(DeployAction.START))
    assert swap(LAKE, "", [], _form(DeployAction.STOP)) == ["deduplicate: stopped"]
    wanted = read_desired(drivers.connection.lake, "deduplicate")
    assert wanted
    assert (wanted.state, wanted.until) == ("stopped", None)


def test_checkpoints_that_a_release_cannot_use_fail_the_run_before_anything_is_stopped(
    drivers: _Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = {"query": "deduplicate", "setting": "deduplicate.mode", "before": "forever", "now": "within_watermark"}
    others = {"query": "sessionize", "setting": "sessionize.gap", "before": "5min", "now": "9min"}
    changes = [{**change, "verdict": "breaking", "why": "so"}, {**others, "verdict": "breaking", "why": "so"}]
    monkeypatch.setattr(compatibility, "run_adloom", _preflight(changes))
    monkeypatch.setattr(compatibility, "code_of", lambda *_: Path())
    why = r"deduplicate\.mode was forever, is within_watermark\. Nothing was stopped"
    with pytest.raises(CheckpointError, match=why):
        check(LAKE, _NEW, _form(DeployAction.RESTART))
    assert drivers.calls == []
    assert check(LAKE, _NEW, _form(DeployAction.RESTART, confirm_reset=True)) == ["deduplicate"]
    assert check(LAKE, _NEW, _form(DeployAction.RESTART, confirm_reset=True, job="all")) == [
        "deduplicate",
        "sessionize",
    ]
    monkeypatch.setattr(compatibility, "run_adloom", _preflight([]))
    assert check(LAKE, _NEW, _form(DeployAction.RESTART)) == []


_PROGRAM = """#!{python}
# Stands in for the command adloom: notes its arguments and its release, and does what `script` says.
import json, os, pathlib, sys
release = pathlib.Path(os.environ.get("PYTHONPATH", "installed")).name
words = [release, *sys.argv[1:sys.argv.index("--lake")]]
with open({calls!r}, "a") as calls:
    calls.write(" ".join(words) + "\\n")
nothing = {same!r} if "contract" in words else "[]"
code, printed = json.loads(pathlib.Path({script!r}).read_text()).get(" ".join(words), [0, nothing])
print(printed)
sys.exit(code)
"""
_AWAY = "error: lake s3a://ads/lake at http://127.0.0.1:1: listing the bucket: it does not answer"


@dataclass
class _Command:
    """The command adloom. ``script``: by release and words, the exit code and the output; else 0 and no changes."""

    folder: Path
    script: dict[str, tuple[int, str]] = field(default_factory=dict)

    def will(self, words: str, code: int, printed: str) -> None:
        self.script[words] = (code, printed)
        (self.folder / "script.json").write_text(json.dumps(self.script))

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def command(drivers: _Drivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Command:
    """The command adloom, for releases whose code is in folders of their versions."""
    program = tmp_path / "adloom"
    program.write_text(
        _PROGRAM.format(
            python=sys.executable,
            calls=str(tmp_path / "calls"),
            script=str(tmp_path / "script.json"),
            same=_SAME_CONTRACT,
        )
    )
    program.chmod(0o755)
    monkeypatch.setenv("ADLOOM_COMMAND", str(program))
    monkeypatch.setattr(compatibility, "unpack", lambda _, release: Path(release.version))
    found = _Command(tmp_path)
    found.will("", 0, "")
    swap(LAKE, _OLD, [], _form(DeployAction.START))
    drivers.calls.clear()
    return found


def _breaking(query: str) -> str:
    return json.dumps(
        [{"query": query, "setting": "mode", "before": "a", "now": "b", "verdict": "breaking", "why": ""}]
    )


def _is_wanted(drivers: _Drivers) -> bool:
    wanted = read_desired(drivers.connection.lake, "deduplicate")
    return wanted is not None and (wanted.state, wanted.until) == ("running", None)


def test_a_reset_that_fails_leaves_the_job_running_as_before(drivers: _Drivers, command: _Command) -> None:
    command.will("1.0.1 checkpoints reset deduplicate", 1, "error: the disk is full")
    why = r"1\.0\.1 was not deployed: .* exit code 1: error: the disk is full; release 1\.0\.0 was started again"
    with pytest.raises(DeployError, match=why):
        swap(LAKE, _NEW, ["deduplicate"], _form(DeployAction.RESTART))
    assert drivers.calls == ["stop deduplicate", "start deduplicate 1.0.0"]
    assert _is_wanted(drivers)


def test_checkpoints_that_were_reset_before_one_failed_are_given_back(drivers: _Drivers, command: _Command) -> None:
    """Otherwise the old release could not use them."""
    command.will("1.0.1 checkpoints reset deduplicate", 1, "error: the disk is full")
    command.will("1.0.0 preflight", 1, _breaking("ingest"))
    with pytest.raises(DeployError, match=r"release 1\.0\.0 was started again"):
        swap(LAKE, _NEW, ["ingest", "deduplicate"], _form(DeployAction.RESTART))
    assert command.calls == [
        "1.0.1 checkpoints reset ingest",
        "1.0.1 checkpoints reset deduplicate",
        "1.0.0 preflight",
        "1.0.0 checkpoints reset ingest",
    ]
    assert drivers.calls[-1] == "start deduplicate 1.0.0"


def test_a_release_that_does_not_work_gives_back_the_checkpoints_too(drivers: _Drivers, command: _Command) -> None:
    drivers.bad_releases = (_NEW,)
    command.will("1.0.0 preflight", 1, _breaking("deduplicate"))
    with pytest.raises(DeployError, match=r"does not work: .*; release 1\.0\.0 was started again"):
        swap(LAKE, _NEW, ["deduplicate"], _form(DeployAction.RESTART))
    assert command.calls == [
        "1.0.1 checkpoints reset deduplicate",
        "1.0.0 preflight",
        "1.0.0 checkpoints reset deduplicate",
    ]
    assert drivers.calls[-1] == "start deduplicate 1.0.0"


def test_a_previous_release_that_cannot_be_restored_is_reported_with_both_reasons(
    drivers: _Drivers, command: _Command
) -> None:
    drivers.bad_releases = (_NEW,)
    command.will("1.0.0 preflight", 2, _AWAY)
    with pytest.raises(DeployError, match=r"out of luck; the previous release could not be restored: .*not answer"):
        swap(LAKE, _NEW, ["deduplicate"], _form(DeployAction.RESTART))


def test_a_job_that_was_not_wanted_is_not_started_by_a_failed_deployment(drivers: _Drivers, command: _Command) -> None:
    swap(LAKE, "", [], _form(DeployAction.STOP))
    drivers.calls.clear()
    command.will("1.0.1 checkpoints reset deduplicate", 1, "error: the disk is full")
    with pytest.raises(DeployError, match="it was not wanted, and was not started"):
        swap(LAKE, _NEW, ["deduplicate"], _form(DeployAction.START))
    assert drivers.calls == ["stop deduplicate"]
    assert not _is_wanted(drivers)


def test_a_lake_that_is_away_for_a_while_leaves_no_pause_behind(
    drivers: _Drivers, command: _Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reset fails because the lake is away, which must not keep the job paused either."""
    command.will("1.0.1 checkpoints reset deduplicate", 1, _AWAY)
    files = drivers.connection.lake.files
    refused: list[str] = []
    write = files.write

    def write_sometimes(key: str, data: bytes) -> None:
        is_resuming = key == desired_key("deduplicate") and b"its pause is over" in data
        if is_resuming and len(refused) < 3:
            refused.append(key)
            raise LakeError("it does not answer")
        write(key, data)

    monkeypatch.setattr(files, "write", write_sometimes)
    monkeypatch.setattr(job_control, "_POLL_S", 0.01)
    with pytest.raises(DeployError, match=r"does not answer; release 1\.0\.0 was started again"):
        swap(LAKE, _NEW, ["deduplicate"], _form(DeployAction.RESTART))
    assert len(refused) == 3
    assert _is_wanted(drivers)


@pytest.mark.parametrize("code", [1, 2], ids=["as-old-releases", "as-this-release"])
def test_a_preflight_that_cannot_compare_says_why(drivers: _Drivers, command: _Command, code: int) -> None:
    command.will("1.0.1 preflight", code, _AWAY)
    with pytest.raises(CommandError, match=r"adloom preflight .*: error: lake s3a://ads/lake .* does not answer"):
        check(LAKE, _NEW, _form(DeployAction.RESTART))
    assert drivers.calls == []


def test_confirmed_resets_are_done_between_the_old_driver_and_the_new_one(
    drivers: _Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap(LAKE, _OLD, [], _form(DeployAction.START))
    drivers.calls.clear()
    monkeypatch.setattr(compatibility, "run_adloom", lambda _, command, **__: drivers.calls.append(" ".join(command)))
    monkeypatch.setattr(compatibility, "code_of", lambda *_: Path())
    swap(LAKE, _NEW, ["deduplicate", "sessionize"], _form(DeployAction.RESTART))
    assert drivers.calls == ["stop deduplicate", "checkpoints reset deduplicate", "start deduplicate 1.0.1"]


def _contract(level: str, *verdicts: str) -> str:
    """What `adloom contract check --json` prints, with changes of these verdicts."""
    changes = [
        {
            "what": f"source.web.when {number}",
            "before": "all records",
            "now": "$.a",
            "verdict": verdict,
            "whom": "producers",
            "why": "records are lost",
        }
        for number, verdict in enumerate(verdicts)
    ]
    version = {"before": "1.0", "now": "1.1", "level": level, "why": "set contract.version to 2.0 or later"}
    return json.dumps({"changes": changes, "version": version})


_CHECK = "1.0.1 contract check"


def test_a_breaking_contract_fails_the_run_before_anything_is_stopped(drivers: _Drivers, command: _Command) -> None:
    command.will(_CHECK, 1, _contract("ok", "safe", "breaking"))
    why = r"breaks the contract: source\.web\.when 1 was all records, is \$\.a: records are lost\. Nothing was stopped"
    with pytest.raises(ContractError, match=why):
        check(LAKE, _NEW, _form(DeployAction.RESTART))
    assert drivers.calls == []
    assert command.calls == ["1.0.1 preflight", _CHECK]


def test_a_breaking_contract_is_deployed_if_the_form_confirms_it(
    drivers: _Drivers, command: _Command, caplog: pytest.LogCaptureFixture
) -> None:
    command.will(_CHECK, 1, _contract("ok", "breaking"))
    with caplog.at_level("INFO"):
        assert check(LAKE, _NEW, _form(DeployAction.RESTART, confirm_breaking=True)) == []
    assert (
        "contract: source.web.when 0 was all records, is $.a: breaking for producers: records are lost" in caplog.text
    )
    assert drivers.calls == []


def test_a_breaking_contract_under_its_old_version_is_never_deployed(drivers: _Drivers, command: _Command) -> None:
    command.will(_CHECK, 1, _contract("error", "breaking"))
    with pytest.raises(ContractError, match=r"under its old version 1\.1.*set contract\.version to 2\.0 or later"):
        check(LAKE, _NEW, _form(DeployAction.RESTART, confirm_breaking=True))
    assert drivers.calls == []


def test_safe_changes_of_the_contract_are_deployed_and_a_missing_version_is_a_warning(
    drivers: _Drivers, command: _Command, caplog: pytest.LogCaptureFixture
) -> None:
    command.will(_CHECK, 0, _contract("warning", "safe"))
    assert check(LAKE, _NEW, _form(DeployAction.RESTART)) == []
    assert "contract version 1.1: set contract.version to 2.0 or later" in caplog.text
    assert drivers.calls == []


def test_a_release_that_is_older_than_contracts_is_deployed(drivers: _Drivers, command: _Command) -> None:
    command.will(_CHECK, 2, "Usage: adloom [OPTIONS]\n│ No such command 'contract'. │\n╰───╯")
    assert check(LAKE, _NEW, _form(DeployAction.RESTART)) == []
    assert drivers.calls == []


@pytest.mark.parametrize(("code", "printed"), [(2, _AWAY), (0, ""), (1, "Killed")], ids=["away", "nothing", "killed"])
def test_a_contract_that_cannot_be_compared_fails_the_run(
    drivers: _Drivers, command: _Command, code: int, printed: str
) -> None:
    command.will(_CHECK, code, printed)
    with pytest.raises(CommandError, match="adloom contract check could not compare: "):
        check(LAKE, _NEW, _form(DeployAction.RESTART))
    assert drivers.calls == []


_ONE, _TWO = "1.1.1", "1.1.2"
"""Releases that hold settings."""


@pytest.fixture
def with_settings(drivers: _Drivers, tmp_path: Path) -> _Drivers:
    """A lake with two releases that differ in settings only. The file of the place says something else again."""
    publish_fake(drivers.connection.lake, tmp_path, _ONE, '[sessionize]\ngap = "5min"\n[job]\ntrigger = "asap"\n')
    publish_fake(drivers.connection.lake, tmp_path, _TWO, '[sessionize]\ngap = "9min"\n[job]\ntrigger = "asap"\n')
    file = tmp_path / "adloom.toml"
    file.write_text('[sessionize]\ngap = "7min"\n')
    drivers.connection = replace(drivers.connection, config=file)
    return drivers


def test_a_release_is_built_with_the_settings_file_of_the_place(
    with_settings: _Drivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Path | None] = []

    def build_wheel(_checkout: Path, folder: Path, settings: Path | None) -> tuple[Path, str]:
        given.append(settings)
        wheel = folder / "adloom-2.0.0-py3-none-any.whl"
        wheel.write_bytes(b"")
        return wheel, "2.0.0"

    monkeypatch.setattr(deploy_streams, "build_wheel", build_wheel)
    assert build(LAKE, _form(DeployAction.START, release=FROM_CHECKOUT)) == "2.0.0"
    assert given == [with_settings.connection.config] == [tmp_path / "adloom.toml"]


def _started_with(connection: LakeConnection, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Settings]:
    """The code and the settings that `adloom driver` would become."""
    became: list[Any] = []
    monkeypatch.setattr(os, "execve", lambda *words: became.extend(words[1:]))
    monkeypatch.setattr(driving, "_stop_with_parent", lambda: None)
    driving.driver("deduplicate", connection.location, None, connection.config)
    words, environment = became
    code = (Path(environment["PYTHONPATH"]) / "spark_jobs" / "__init__.py").read_text()
    return code, load_settings(Path(words[words.index("--config") + 1]))


def test_a_rollback_brings_back_code_and_settings(with_settings: _Drivers, monkeypatch: pytest.MonkeyPatch) -> None:
    def driver() -> tuple[str, str]:
        code, settings = _started_with(with_settings.connection, monkeypatch)
        return code, format_duration(settings.sessionize.gap)

    one, two = (f'__version__ = "{version}"\n' for version in (_ONE, _TWO))
    swap(LAKE, _ONE, [], _form(DeployAction.START))
    assert driver() == (one, "5min")
    swap(LAKE, _TWO, [], _form(DeployAction.RESTART))
    assert driver() == (two, "9min")
    swap(LAKE, "", [], _form(DeployAction.ROLLBACK))
    assert driver() == (one, "5min")
    swap(LAKE, _OLD, [], _form(DeployAction.RESTART))
    assert driver()[1] == "7min", "a release without settings runs with those of the place"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The commands that were run, each with the text of its settings file; they find no change."""
    found: list[tuple[str, str]] = []

    def run(words: list[str], **_: object) -> tuple[int, str]:
        file = Path(words[words.index("--config") + 1])
        found.append((words[0], file.read_text().splitlines()[1]))
        return 0, _SAME_CONTRACT if words[0] == "contract" else "[]"

    monkeypatch.setattr(commands, "run_program", run)
    return found


def test_the_settings_that_change_are_shown_and_the_new_ones_are_checked(
    with_settings: _Drivers, asked: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    swap(LAKE, _ONE, [], _form(DeployAction.START))
    with caplog.at_level("INFO"):
        assert check(LAKE, _TWO, _form(DeployAction.RESTART)) == []
    shown = [text for text in caplog.messages if ": setting " in text]
    assert shown == ["deduplicate: setting sessionize.gap was 5min, is 9min"]
    assert asked == [("preflight", 'gap = "9min"'), ("contract", 'gap = "9min"')]
    caplog.clear()
    with caplog.at_level("INFO"):
        check(LAKE, _ONE, _form(DeployAction.RESTART))
    assert f"deduplicate: release {_ONE} has the settings that are in use" in caplog.messages
    assert with_settings.calls[-1] == f"start deduplicate {_ONE}"


def test_a_rollback_is_checked_with_the_settings_that_it_returns_to(
    with_settings: _Drivers,
    asked: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(LakeError, match="has no earlier release"):
        check(LAKE, "", _form(DeployAction.ROLLBACK))
    swap(LAKE, _ONE, [], _form(DeployAction.START))
    swap(LAKE, _TWO, [], _form(DeployAction.RESTART))
    with caplog.at_level("INFO"):
        assert check(LAKE, "", _form(DeployAction.ROLLBACK)) == []
    assert "deduplicate: setting sessionize.gap was 9min, is 5min" in caplog.messages
    assert asked == [("preflight", 'gap = "5min"')]
    monkeypatch.setattr(compatibility, "run_adloom", lambda *_, **__: (1, _breaking("deduplicate")))
    with pytest.raises(CheckpointError, match=rf"release {_ONE} cannot use the checkpoints.*Nothing was stopped"):
        check(LAKE, "", _form(DeployAction.ROLLBACK))
    assert check(LAKE, "", _form(DeployAction.ROLLBACK, confirm_reset=True)) == ["deduplicate"]
    assert with_settings.calls[-1] == f"start deduplicate {_TWO}"


def test_an_old_release_is_compared_by_the_settings_of_the_place(
    with_settings: _Drivers, asked: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        check(LAKE, _ONE, _form(DeployAction.RESTART))
        check(LAKE, _OLD, _form(DeployAction.RESTART))
    assert "deduplicate: setting sessionize.gap was 7min, is 5min" in caplog.messages
    assert f"release {_OLD} holds no settings; its drivers use those that they are started with" in caplog.messages
    assert asked[2:] == [("preflight", 'gap = "7min"'), ("contract", 'gap = "7min"')]
    assert with_settings.calls == []


def test_tasks_go_by_the_settings_of_the_release_that_runs(
    with_settings: _Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = with_settings.connection
    monkeypatch.setattr(lake_connection, "connect", lambda *_: connection)
    connection.lake.files.write(f"{CHECKPOINTS}/deduplicate/ingest/v1/manifest.json", b"{}")
    assert connect_started(LAKE) == connection
    swap(LAKE, _ONE, [], _form(DeployAction.START))
    swap(LAKE, _TWO, [], _form(DeployAction.RESTART, job="deduplicate"))
    swap(LAKE, "", [], _form(DeployAction.ROLLBACK))
    found = connect_started(LAKE)
    assert found.settings.sessionize.gap == timedelta(minutes=5)
    assert found.config
    assert '"5min"' in found.config.read_text()
