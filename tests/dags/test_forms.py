"""What is typed into a form is refused, or reaches a command as one word that is not an option; never a shell."""

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import ParamValidationError

from ad_dags.connection import lake_connection
from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.dags import deploy_streams
from spark_jobs.config.settings import Settings
from spark_jobs.errors import LakeError
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CHECKPOINTS
from tests.dags.fakes import LAKE, RecordingLauncher

_DAGS = Path(__file__).parents[2] / "dags"
_NASTY = (
    "; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "a\ntouch pwned",
    "| touch pwned",
    "&& touch pwned",
    "--conf=spark.driver.extraJavaOptions=-Dpwned",
    "--conf",
    "--jars",
    "--lake=/elsewhere",
    "--config",
    "../../etc/passwd",
    "/etc/passwd",
    "*",
    "'",
    '"',
    "\\",
    "\x00",
    "${HOME}",
    "%s%n",
    "🙂",
    "x" * 10_000,
    "",
    " ",
)
_GOOD: dict[str, dict[str, Any]] = {
    "deploy_streams": {
        "job": "all",
        "action": "restart",
        "release": "1.2.3",
        "confirm_reset": True,
        "confirm_breaking": True,
    },
    "clean_checkpoints": {"dry_run": True, "checkpoints": ["attribute/sessionize/v1"]},
    "credit_conversions": {"from": "2026-03-01T00:00:00Z", "to": "2026-04-01T00:00:00+02:00", "dry_run": True},
    "repair_late": {"dry_run": True},
    "requeue_quarantine": {
        "verdicts": ["missing_event_type"],
        "since": "2026-03-01T00:00:00Z",
        "until": "2026-03-02T00:00:00+02:00",
        "source": "ads",
        "dry_run": False,
    },
    "replay_window": {
        "from": "2026-03-01T00:00:00Z",
        "to": "2026-03-02T00:00:00+02:00",
        "tables": ["sessions"],
        "apply": True,
    },
}
"""By DAG, a form filled in properly."""
_FIELDS = [(dag, field) for dag, form in _GOOD.items() for field in form]


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(_DAGS)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[str]]]:
    """The commands that tasks have run, word by word, on a lake that jobs have run on."""
    program, words = tmp_path / "adloom", tmp_path / "words.jsonl"
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"with open({str(words)!r}, 'a') as file: file.write(json.dumps(sys.argv[1:]) + '\\n')\nprint('[]')\n"
    )
    program.chmod(0o755)
    lake = open_lake(str(tmp_path / "lake"))
    lake.files.write(f"{CHECKPOINTS}/attribute/sessionize/v1.json", b"{}")
    connection = LakeConnection(str(lake.path), None, Settings(), lake, RecordingLauncher())
    monkeypatch.setenv("ADLOOM_COMMAND", str(program))
    monkeypatch.chdir(tmp_path)
    for module in (lake_connection, deploy_streams):
        monkeypatch.setattr(module, "connect", lambda *_: connection)
    return lambda: [json.loads(line) for line in words.read_text().splitlines()] if words.exists() else []


def _accepts(bag: DagBag, dag: str, form: dict[str, Any]) -> bool:
    params = deepcopy(bag.dags[dag].params)
    try:
        params.update(form)
        params.validate()
    except ParamValidationError:
        return False
    return True


def _submit(dag: str, form: dict[str, Any]) -> None:
    """Runs the tasks that read the form."""
    if dag == "deploy_streams":
        deploy_streams.check(LAKE, deploy_streams.build(LAKE, params=form), params=form)
    else:
        getattr(import_module(f"ad_dags.dags.{dag}"), dag)(LAKE, params=form)


def test_every_form_is_covered(bag: DagBag) -> None:
    assert {name: set(dag.params) for name, dag in bag.dags.items() if dag.params} == {
        name: set(form) for name, form in _GOOD.items()
    }


@pytest.mark.parametrize("dag", _GOOD)
def test_airflow_hands_the_form_to_the_tasks_that_read_it(bag: DagBag, dag: str) -> None:
    tasks: list[Any] = [task for task in bag.dags[dag].tasks if hasattr(task, "python_callable")]
    readers = [task for task in tasks if "params" in signature(task.python_callable).parameters]
    assert [task.task_id for task in readers] == (["build", "check", "swap"] if dag == "deploy_streams" else [dag])
    context = {"params": _GOOD[dag], "run_id": "a run"}
    for task in readers:
        assert task.determine_kwargs({**context, **task.op_kwargs})["params"] == _GOOD[dag]


@pytest.mark.parametrize("dag", _GOOD)
def test_a_proper_form_is_accepted(bag: DagBag, dag: str) -> None:
    assert _accepts(bag, dag, _GOOD[dag])


@pytest.mark.parametrize("value", _NASTY, ids=range(len(_NASTY)))
@pytest.mark.parametrize(("dag", "field"), _FIELDS)
def test_nasty_values_are_refused(
    bag: DagBag, commands: Callable[[], list[list[str]]], dag: str, field: str, value: str
) -> None:
    good = _GOOD[dag]
    form = {**good, field: [value] if isinstance(good[field], list) else value}
    assert not _accepts(bag, dag, form), "the form accepts it"
    assert not commands()


@pytest.mark.parametrize("value", [value for value in _NASTY if "\x00" not in value], ids=str)
@pytest.mark.parametrize("field", ["from", "to"])
def test_even_unchecked_a_time_is_one_word_and_not_an_option(
    commands: Callable[[], list[list[str]]], field: str, value: str
) -> None:
    _submit("replay_window", {**_GOOD["replay_window"], field: value})
    (words,) = commands()
    assert words[0] == "replay"
    assert f"--{field}={value}" in words
    assert words[-2:] == ["--tables=sessions", "--apply"]
    assert len(words) == 7
    assert not (Path.cwd() / "pwned").exists()


@pytest.mark.parametrize(
    ("form", "options"),
    [
        pytest.param({}, [], id="what is new"),
        pytest.param({"dry_run": True}, ["--dry-run"], id="what would be new"),
        pytest.param(
            {"from": "2026-03-01T00:00:00Z", "to": "2026-04-01T00:00:00Z"},
            ["--from=2026-03-01T00:00:00Z", "--to=2026-04-01T00:00:00Z"],
            id="a window again",
        ),
    ],
)
def test_the_form_of_credit_becomes_its_options(
    bag: DagBag, commands: Callable[[], list[list[str]]], form: dict[str, Any], options: list[str]
) -> None:
    params = deepcopy(bag.dags["credit_conversions"].params)
    params.update(form)
    _submit("credit_conversions", params.validate())
    ((command, lake, connection, *found),) = commands()
    assert (command, lake) == ("credit", "--lake")
    assert connection
    assert found == options


def test_even_unchecked_a_release_leads_nowhere(commands: Callable[[], list[list[str]]]) -> None:
    for value in _NASTY:
        with pytest.raises(LakeError, match="has no release"):
            _submit("deploy_streams", {**_GOOD["deploy_streams"], "release": value})
    assert not commands()
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["adloom", "lake"]


@pytest.mark.parametrize("value", [value for value in _NASTY if value and "\x00" not in value], ids=str)
@pytest.mark.parametrize("field", ["verdicts", "since", "until", "source"])
def test_even_unchecked_a_selection_is_made_of_words_that_are_no_options(
    commands: Callable[[], list[list[str]]], field: str, value: str
) -> None:
    form = _GOOD["requeue_quarantine"]
    _submit("requeue_quarantine", {**form, field: [value] if field == "verdicts" else value})
    (words,) = commands()
    assert words[0] == "requeue"
    assert f"--{field.removesuffix('s')}={value}" in words
    assert len(words) == 7
    assert not (Path.cwd() / "pwned").exists()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        pytest.param({}, ["--dry-run"], id="as it comes up"),
        pytest.param({"dry_run": False}, [], id="everything"),
        pytest.param(
            {"verdicts": ["invalid_data", "no_source"], "source": "ads", "dry_run": False},
            ["--verdict=invalid_data", "--verdict=no_source", "--source=ads"],
            id="some",
        ),
    ],
)
def test_the_form_of_a_requeue_becomes_its_options(
    bag: DagBag, commands: Callable[[], list[list[str]]], form: dict[str, Any], words: list[str]
) -> None:
    params = deepcopy(bag.dags["requeue_quarantine"].params)
    params.update(form)
    _submit("requeue_quarantine", params.validate())
    ((command, lake, connection, *options),) = commands()
    assert (command, lake) == ("requeue", "--lake")
    assert connection
    assert options == words
