"""The dashboards of Grafana: each panel asks for what exists, says what it shows, and has a place of its own."""

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.docs.generate import DASHBOARDS
from infra.grafana.model import COLUMNS, Dashboard, Kind, Panel, Section, dashboard_json
from tests.support.exposed import exposed_metrics

_GRAFANA = Path(__file__).parents[2] / "infra" / "grafana"
_PANELS = {
    f"{board.name}-{section.title}-{panel.title}".replace(" ", "_"): panel
    for board in DASHBOARDS.values()
    for section in board.sections
    for panel in section.panels
}
_EACH = pytest.mark.parametrize("panel", list(_PANELS.values()), ids=list(_PANELS))
_GROUPS = yaml.safe_load((_GRAFANA.parent / "prometheus" / "rules.yml").read_text())["groups"]
_RULES: dict[str, str] = {rule["alert"]: rule["expr"] for group in _GROUPS for rule in group["rules"]}
_FILES = pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
_UNITS = {"none", "short", "s", "bytes", "percentunit", "rowsps", "cps", "bool_yes_no"}
"""Of Grafana's, those in use: an id that it does not know shows bare numbers."""
_NAME = re.compile(r"(?<![\w.$])[a-zA-Z_:][\w:]*")
_NOT_NAMES = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|on)\s*\([^)]*\)")
"""Matchers, ranges, lists of labels."""
_PROMQL = {"and", "or", "bool", "count", "sum", "max", "topk", "vector", "scalar", "time", "absent"}
_PROMQL |= {"rate", "increase", "changes", "delta"}
_PROMETHEUS = {"ALERTS": {"alertname", "alertstate", "severity"}, "up": {"job", "instance"}}
"""Metrics of Prometheus itself, and their labels."""


def _alerts_in(panel: Panel) -> list[str]:
    """The alerts that the text of a panel with a limit names."""
    return [] if panel.alarm is None else [alert for alert in _RULES if re.search(rf"\b{alert}\b", panel.meaning)]


@_FILES
def test_a_dashboard_is_the_one_that_the_code_gives(file: Path) -> None:
    assert file.read_text() == dashboard_json(DASHBOARDS[file]), "run: make docs"


def test_no_other_dashboard_is_loaded() -> None:
    assert set((_GRAFANA / "dashboards").iterdir()) == DASHBOARDS.keys()


@_EACH
def test_a_panel_asks_for_metrics_and_labels_that_exist(panel: Panel) -> None:
    exposed = {**exposed_metrics(), **_PROMETHEUS}
    names = set(_NAME.findall(_NOT_NAMES.sub(" ", panel.query))) - _PROMQL
    assert names
    assert names <= exposed.keys()
    for name, matchers in re.findall(r"(\w+)\{([^}]*)\}", panel.query):
        assert set(re.findall(r"(\w+)\s*[=!]", matchers)) <= exposed[name], name
    labels = set().union(*(exposed[name] for name in names))
    if any(name in _PROMETHEUS for name in names):
        labels |= set().union(*exposed.values())  # an alert has those of its rule
    grouped = re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", panel.query)
    assert {label.strip() for group in grouped for label in group.split(",")} <= labels
    assert set(re.findall(r"\{\{(\w+)\}\}", panel.legend)) <= labels


@_EACH
def test_a_panel_says_what_it_shows_and_in_which_unit(panel: Panel) -> None:
    assert panel.unit in _UNITS
    assert panel.title
    assert re.fullmatch(r"[A-Z].*\.", panel.meaning), panel.meaning
    assert panel.legend or not panel.kind.is_past, "the name of a line"
    assert panel.legend or panel.kind is not Kind.TABLE, "the name of the column with the values"


@pytest.mark.parametrize("panel", [panel for panel in _PANELS.values() if _alerts_in(panel)], ids=lambda one: one.title)
def test_a_panel_is_red_where_the_alert_that_it_names_fires(panel: Panel) -> None:
    for alert in _alerts_in(panel):
        expression = _RULES[alert]
        products = re.findall(r"(?<![\w.])[\d.]+(?:e\d+)?(?: \* [\d.]+)*(?!\w)", expression)
        limits = {math.prod(map(float, product.split(" * "))) for product in products}
        # Of rows and the like, more than 0 is 1; a number of alerts has their own expression in it.
        assert panel.alarm in limits or (panel.alarm == 1 and 0 in limits), f"{alert}: {limits}"
        assert panel.alarm != 1 or 0 in limits or expression in panel.query


def test_every_metric_of_adloom_is_on_a_dashboard_or_left_out_on_purpose() -> None:
    asked = " ".join(panel.query for panel in _PANELS.values())
    unseen = {name for name in exposed_metrics() if not re.search(rf"\b{name}\b", asked)}
    assert unseen == {"adloom_batch_id", "adloom_ledger_kept"}, "a number that only counts; ok less duplicates and late"


@_FILES
def test_panels_have_numbers_and_places_of_their_own(file: Path) -> None:
    panels = json.loads(file.read_text())["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= COLUMNS for place in places)
    cells = [cell for place in places for cell in _cells(place)]
    assert len(cells) == len(set(cells)), "they overlap"


def _cells(place: dict[str, int]) -> list[tuple[int, int]]:
    across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
    return list(itertools.product(across, down))


def test_a_line_ends_where_a_panel_does_not_fit_and_the_next_begins_below_its_tallest() -> None:
    def one(kind: Kind) -> Panel:
        return Panel("t", "m", "up", "none", kind)

    section = Section("s", (one(Kind.NUMBER), one(Kind.GRAPH), one(Kind.GRAPH)))
    panels = json.loads(dashboard_json(Dashboard("d", "t", "m", (section, section))))["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert places == [(0, 0), (0, 1), (4, 1), (0, 9), (0, 17), (0, 18), (4, 18), (0, 26)]


def test_the_dashboards_read_the_source_that_is_provisioned() -> None:
    (source,) = _provisioned("datasources/prometheus.yml")["datasources"]
    scraped = yaml.safe_load((_GRAFANA.parent / "prometheus" / "prometheus.yml").read_text())["global"]
    assert source["jsonData"]["timeInterval"] == scraped["scrape_interval"], "the shortest range of a rate follows"
    for file in DASHBOARDS:
        found = re.findall(r'"uid": "(?!adloom-)([^"]+)"', file.read_text())
        assert set(found) == {source["uid"]}


def test_the_dashboards_lie_where_grafana_looks_for_them() -> None:
    (provider,) = _provisioned("dashboards/adloom.yml")["providers"]
    compose = yaml.safe_load((_GRAFANA.parents[1] / "docker-compose.yml").read_text())
    volumes = compose["services"]["grafana"]["volumes"]
    assert f"./infra/grafana/dashboards:{provider['options']['path']}:ro" in volumes
    # Not the whole folder: the image has others in it.
    for folder in (_GRAFANA / "provisioning").iterdir():
        assert f"./infra/grafana/provisioning/{folder.name}:/etc/grafana/provisioning/{folder.name}:ro" in volumes


def _provisioned(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((_GRAFANA / "provisioning" / name).read_text())
    return found
