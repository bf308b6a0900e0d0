"""The description of a Grafana dashboard, and the JSON that Grafana reads.

A dashboard is a table of panels in sections. Where a panel stands, its number and its colors follow from its place and
kind. ``make docs`` writes the JSON; nothing is edited in Grafana.
"""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

COLUMNS = 24
"""Width of Grafana's grid."""
_SOURCE = {"type": "prometheus", "uid": "prometheus"}
"""As in ``provisioning/datasources/prometheus.yml``."""
_SCHEMA = 39
"""Of Grafana 11; later ones take it and migrate it as they load it."""


class Kind(Enum):
    """How a panel shows its queries: Grafana's name of it, width in columns, height in rows, draws the past or not."""

    NUMBER = "stat", 4, 4, False
    GRAPH = "timeseries", 12, 8, True
    STATES = "state-timeline", 12, 8, True
    TABLE = "table", 12, 8, False

    def __init__(self, plugin: str, width: int, height: int, is_past: bool) -> None:  # noqa: FBT001 a row of the enum
        self.plugin, self.width, self.height, self.is_past = plugin, width, height, is_past


@dataclass(frozen=True)
class Panel:
    """A panel.

    Attributes:
        title: a few words.
        meaning: what it shows and what to do about it, for people.
        query: PromQL. It may use ``$query``, the chosen queries of adloom, and Grafana's ``$__rate_interval``.
        unit: Grafana's id of the unit, such as ``s`` or ``rowsps``.
        kind: how it is shown.
        legend: name of a series, from its labels, as in ``{{query}}``; empty: the labels. Of a table: of its values.
        alarm: from this value on it is red; None: never.
    """

    title: str
    meaning: str
    query: str
    unit: str
    kind: Kind = Kind.GRAPH
    legend: str = ""
    alarm: float | None = None


@dataclass(frozen=True)
class Section:
    """Panels under a title."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Dashboard:
    """A dashboard: the name of its file, title, meaning, sections.

    ``by_query`` lets the reader choose among adloom's queries.
    """

    name: str
    title: str
    meaning: str
    sections: tuple[Section, ...]
    by_query: bool = False


def dashboard_json(dashboard: Dashboard) -> str:
    """``dashboard`` as Grafana reads it."""
    found = {
        "uid": f"adloom-{dashboard.name}",
        "title": dashboard.title,
        "description": dashboard.meaning,
        "tags": ["adloom"],
        "schemaVersion": _SCHEMA,
        "editable": False,
        "timezone": "utc",
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "graphTooltip": 1,
        "links": [_other_dashboards()],
        "templating": {"list": [_choice_of_queries()] if dashboard.by_query else []},
        "panels": _placed(dashboard.sections),
    }
    return json.dumps(found, indent=2) + "\n"


def _placed(sections: tuple[Section, ...]) -> list[dict[str, Any]]:
    """The panels from left to right and from top to bottom; a panel that does not fit into a line begins the next."""
    panels: list[dict[str, Any]] = []
    top = 0
    for section in sections:
        panels.append({"type": "row", "title": section.title, "collapsed": False, "panels": []})
        panels[-1] |= {"id": len(panels), "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1}}
        left, top, height = 0, top + 1, 0
        for panel in section.panels:
            if left + panel.kind.width > COLUMNS:
                left, top, height = 0, top + height, 0
            place = {"x": left, "y": top, "w": panel.kind.width, "h": panel.kind.height}
            panels.append({"id": len(panels) + 1, "gridPos": place, **_panel(panel)})
            left, height = left + panel.kind.width, max(height, panel.kind.height)
        top += height
    return panels


def _panel(panel: Panel) -> dict[str, Any]:
    target: dict[str, Any] = {"refId": "A", "datasource": _SOURCE, "expr": panel.query}
    if panel.kind is Kind.TABLE:
        target |= {"format": "table", "instant": True}
    else:
        target |= {"legendFormat": panel.legend or "__auto", ("range" if panel.kind.is_past else "instant"): True}
    shown: dict[str, Any] = {
        "type": panel.kind.plugin,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": _look(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
        "targets": [target],
    }
    if panel.kind is Kind.TABLE:
        columns = {"excludeByName": {"Time": True}, "renameByName": {"Value": panel.legend}}
        shown["transformations"] = [{"id": "organize", "options": columns}]
        shown["options"] = _OPTIONS[panel.kind] | {"sortBy": [{"displayName": panel.legend, "desc": True}]}
    return shown


_OPTIONS: dict[Kind, dict[str, Any]] = {
    Kind.NUMBER: {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
    },
    Kind.GRAPH: {
        "legend": {"displayMode": "list", "placement": "bottom", "calcs": [], "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    Kind.STATES: {
        "mergeValues": True,
        "showValue": "never",
        "legend": {"displayMode": "list", "placement": "bottom", "calcs": [], "showLegend": True},
        "tooltip": {"mode": "single", "sort": "none"},
    },
    Kind.TABLE: {"showHeader": True},
}


def _look(panel: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.alarm is not None:
        steps.append({"color": "red", "value": panel.alarm})
    look: dict[str, Any] = {"unit": panel.unit, "color": {"mode": "thresholds"}}
    match panel.kind:
        case Kind.GRAPH:
            look["color"] = {"mode": "palette-classic"}
            limit = {"mode": "off" if panel.alarm is None else "dashed"}
            line = {"drawStyle": "line", "fillOpacity": 10, "showPoints": "never", "spanNulls": False}
            look["custom"] = line | {"thresholdsStyle": limit}
        case Kind.STATES:
            # Of these, 1 is good.
            steps = [{"color": "red", "value": None}, {"color": "green", "value": 1}]
            look["mappings"] = [{"type": "value", "options": {"0": {"text": "no"}, "1": {"text": "yes"}}}]
    return look | {"thresholds": {"mode": "absolute", "steps": steps}}


def _choice_of_queries() -> dict[str, Any]:
    """The variable ``query``: all of them, or those that the reader chooses."""
    return {
        "name": "query",
        "label": "query",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": "label_values(adloom_query_up, query)", "refId": "query"},
        "refresh": 2,  # whenever the time range changes
        "sort": 1,  # by name
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _other_dashboards() -> dict[str, Any]:
    """Links to the dashboards with the same tag; the time range goes along."""
    return {
        "type": "dashboards",
        "title": "adloom",
        "tags": ["adloom"],
        "keepTime": True,
        "includeVars": False,
        "asDropdown": False,
        "targetBlank": False,
        "icon": "dashboard",
        "tooltip": "",
        "url": "",
    }
