"""Each alert of Prometheus says what to do, and links to its section of the runbook."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.exposed import exposed_metrics

_CHECKOUT = Path(__file__).parents[2]
_GROUPS = yaml.safe_load((_CHECKOUT / "infra" / "prometheus" / "rules.yml").read_text())["groups"]
_RULES: dict[str, dict[str, Any]] = {rule["alert"]: rule for group in _GROUPS for rule in group["rules"]}


@pytest.mark.parametrize("alert", _RULES)
def test_an_alert_links_to_its_section_of_the_runbook(alert: str) -> None:
    rule = _RULES[alert]
    assert {"summary", "do", "runbook"} == rule["annotations"].keys()
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert (page, anchor) == ('{{ or $externalLabels.docs "docs" }}/runbook.md', alert.lower())
    runbook = (_CHECKOUT / "docs" / "runbook.md").read_text()
    headings = re.findall(r"^#+ (.+)$", runbook, re.MULTILINE)
    assert anchor in [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


def test_rules_ask_for_metrics_that_exist() -> None:
    used = {name for rule in _RULES.values() for name in re.findall(r"adloom_\w+", rule["expr"])}
    assert used <= exposed_metrics().keys()


def test_every_metric_is_documented_and_no_other() -> None:
    documented = set(re.findall(r"`(adloom_\w+)`", (_CHECKOUT / "docs" / "containers.md").read_text()))
    assert documented == exposed_metrics().keys()


def test_every_alert_has_a_test_that_sees_it_fire() -> None:
    tests = yaml.safe_load((_CHECKOUT / "infra" / "prometheus" / "rules_test.yml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fired == _RULES.keys()
