"""Rules of invalid traffic as text: what is accepted, which versions follow, and how a bad rule is refused."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from spark_jobs.errors import RulesError
from spark_jobs.lake.open import open_lake
from spark_jobs.marks.rules_in_use import keep_rules, read_rules
from spark_jobs.traffic_rules.patterns import any_of, parse_pattern
from spark_jobs.traffic_rules.rule_files import load_rules
from spark_jobs.traffic_rules.rules import KINDS, RuleSet, UserAgentRule

_RATE = """
[[rule]]
id = "r"
class = "givt"
kind = "rate"
event_type = "click"
key = "ip"
window = "60s"
threshold = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rules.toml"


def _load(file: Path, text: str) -> RuleSet:
    file.write_text(text)
    return load_rules(file)


def test_the_default_rules_name_the_version_of_the_list_of_crawlers() -> None:
    rules = {rule.id: rule for rule in load_rules().rules}
    crawlers = rules["crawlers"]
    assert isinstance(crawlers, UserAgentRule)
    assert len(crawlers.patterns) > 1000
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?", crawlers.list_version or "")
    assert {rule.kind for rule in rules.values()} == {"user_agent_list", "rate", "repeat", "delay", "elsewhere"}


def test_equal_rules_have_equal_versions_and_others_differ(file: Path) -> None:
    (rule,) = _load(file, _RATE).rules
    (same,) = _load(file, _RATE.replace('"60s"', '"1min"').replace('"click"', '["click", "click"]')).rules
    assert same.version == rule.version
    assert re.fullmatch(r"[0-9a-f]{12}", rule.version)
    changes = [('"60s"', '"61s"'), ("5", "6"), ('"ip"', '"user_id"'), ("givt", "sivt"), ('"click"', '"activity"')]
    others = {_load(file, _RATE.replace(*change)).rules[0].version for change in changes}
    assert len(others - {rule.version}) == len(changes)


_REPEAT = """
[[rule]]
id = "repeated-clicks"
class = "givt"
kind = "repeat"
event_type = "click"
window = "10min"
threshold = 1
"""


def test_a_rule_that_counts_clicks_from_elsewhere_keeps_the_version_that_it_had(file: Path) -> None:
    (rule,) = _load(file, _REPEAT).rules
    assert rule.version == "d0201ff75fae", "marks of lakes that use it would be revoked and given again"
    (told,) = _load(file, f"{_REPEAT}without_elsewhere = false").rules
    assert told == rule
    (without,) = _load(file, f"{_REPEAT}without_elsewhere = true").rules
    assert without.version != rule.version


def test_the_reach_of_a_rule_includes_the_impressions_of_the_clicks_that_it_counts(file: Path) -> None:
    elsewhere = _REPEAT.replace('"repeat"', '"elsewhere"').replace("threshold = 1\n", "")
    assert _load(file, elsewhere).reach == timedelta(minutes=10)
    assert _load(file, _REPEAT).reach == timedelta(minutes=10)
    assert _load(file, f"{_REPEAT}without_elsewhere = true").reach == timedelta(minutes=70)


def test_times_are_the_same_in_any_zone(file: Path) -> None:
    versions = {
        _load(file, f"{_RATE}from = {time}").rules[0].version
        for time in ("2026-03-01T12:00:00Z", "2026-03-01T13:00:00+01:00", '"2026-03-01T12:00:00Z"')
    }
    assert len(versions) == 1


def test_a_set_does_not_depend_on_the_order_of_its_rules_nor_on_where_networks_stand(file: Path) -> None:
    cidr = '[[rule]]\nid = "c"\nclass = "givt"\nkind = "cidr"\nevent_type = "click"\n'
    networks = 'networks = ["192.0.2.0/24", "::ffff:10.0.0.0/104"]\n'
    (file.parent / "networks.txt").write_text("10.0.0.0/8 # private\n\n# remark\n192.0.2.0/24\n")
    sets = [
        _load(file, _RATE + cidr + networks),
        _load(file, cidr + 'file = "networks.txt"\n' + _RATE),
        _load(file, cidr + 'file = "networks.txt"\nnetworks = ["10.0.0.0/8"]\n' + _RATE),
    ]
    assert len({one.digest for one in sets}) == 1
    assert '"networks":["10.0.0.0/8","192.0.2.0/24"]' in sets[0].canonical


def test_a_set_survives_the_lake(file: Path, tmp_path: Path) -> None:
    rules, lake = _load(file, f"{_RATE}from = 2026-03-01T12:00:00+02:00"), open_lake(str(tmp_path / "lake"))
    keep_rules(lake, rules)
    assert read_rules(lake, rules.digest) == rules


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('"60s"', '"60"'), "rule 'r': window '60': '60' is not a duration"),
        (('"60s"', '"0s"'), "rule 'r': window '0s': no time passes in 0s"),
        (("threshold = 5", "threshold = 0"), "rule 'r': threshold 0: Input should be greater than or equal to 1"),
        (("threshold = 5", ""), "rule 'r': threshold is missing; add it"),
        (("threshold = 5", "threshold = 5\nlimit = 1"), "limit: a rule of kind rate has no such field; remove it"),
        (('"ip"', '"mail"'), "rule 'r': key 'mail': Input should be 'user_id' or 'ip'"),
        (('"click"', '"visit"'), "'visit' is not an event type; choose from impression, click, activity, conversion"),
        (('"givt"', '"bad"'), "rule 'r': class 'bad': Input should be 'givt' or 'sivt'"),
        (('"rate"', '"speed"'), f"rule 'r': kind 'speed' is unknown; choose one of {', '.join(KINDS)}"),
        (('kind = "rate"', ""), f"rule 'r': kind is missing; choose one of {', '.join(KINDS)}"),
        (('id = "r"', ""), "rule number 1: id is missing"),
        (('id = "r"', 'id = "R 1"'), "rule 'R 1': id 'R 1': String should match pattern"),
        (("5", "5\nfrom = 2026-03-01T12:00:00"), "from 2026-03-01 12:00:00: Input should have timezone"),
        (("5", "5\nfrom = 2026-03-02T00:00:00Z\nto = 2026-03-01T00:00:00Z"), "is not after from"),
        (("5", f"5\n{_RATE}"), "rule 'r': id 'r' is there twice; give each rule its own"),
        (("[[rule]]", "[[rules]]"), "rules is not a rule; each rule is a table [[rule]]"),
        (('"rate"', '"repeat"'), "rule 'r': key: a rule of kind repeat has no such field"),
    ],
)
def test_a_bad_rule_is_refused_with_its_field_and_value(change: tuple[str, str], told: str, file: Path) -> None:
    with pytest.raises(RulesError) as error:
        _load(file, _RATE.replace(*change, 1))
    assert str(file) in str(error.value)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ('kind = "repeat"\nevent_type = "impression"\nwindow = "1s"\nthreshold = 1', "this kind is for click only"),
        ('kind = "elsewhere"\nevent_type = "conversion"\nwindow = "1h"', "this kind is for click only"),
        ('kind = "elsewhere"\nevent_type = "click"\nwindow = "0s"', "window '0s': no time passes in 0s"),
        (
            'kind = "repeat"\nevent_type = "click"\nwindow = "1s"\nthreshold = 1\nwithout_elsewhere = "some"',
            "without_elsewhere 'some': Input should be a valid boolean",
        ),
        ('kind = "delay"\nevent_type = "activity"\nthreshold = "1s"', "this kind is for click and conversion only"),
        (
            'kind = "sequence"\nevent_type = "click"\nkey = "ip"\nwindow = "1s"\nthreshold = 1\nwithout = "click"',
            "without click: that is its event_type too",
        ),
        ('kind = "cidr"\nevent_type = "click"\nnetworks = ["10.0.0.1/8"]', "10.0.0.1/8 has host bits set"),
        ('kind = "cidr"\nevent_type = "click"\nfile = "none.txt"', "none.txt cannot be read"),
        ('kind = "user_agent_list"\nevent_type = "click"\npatterns = ["a(?=b)"]', "at character 2"),
        ('kind = "user_agent_list"\nevent_type = "click"\nlist = "bots"\npatterns = ["a"]', "list 'bots'"),
        ('kind = "user_agent_list"\nevent_type = "click"\nlist_version = "1"\npatterns = ["a"]', "list_version '1'"),
    ],
)
def test_what_a_kind_cannot_mean_is_refused(fields: str, told: str, file: Path) -> None:
    with pytest.raises(RulesError) as error:
        _load(file, f'[[rule]]\nid = "x"\nclass = "givt"\n{fields}\n')
    assert "rule 'x'" in str(error.value)
    assert told in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "a*", "(?i)bot", "(?<!a)b", "a(?=b)", r"(a)\1", r"\bbot", "a++", "a{2}{3}", "(a|b)*", "(a){21}", "(a"),
        *("a)", "[]", "[[:alpha:]]", "[a&&b]", "[a", "a{", "]", "*a", "^*a", "\\", r"\z", "[b-a]", "a|"),
    ],
)
def test_patterns_that_the_engines_read_differently_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        parse_pattern(text)


@pytest.mark.parametrize(
    ("text", "java", "literal"),
    [
        ("Googlebot\\/", "Googlebot\\/", "Googlebot/"),
        ("a$|b$", "a\\z|b\\z", None),
        (r"[\s\S]*x\$[$^]", r"[\s\S]*x\$[$^]", None),
        ("(?:ab){2,20}?c+", "(?:ab){2,20}?c+", None),
    ],
)
def test_patterns_are_written_for_java(text: str, java: str, literal: str | None) -> None:
    found = parse_pattern(text)
    assert (found.text, found.java, found.literal) == (text, java, literal)


def test_words_that_begin_alike_share_a_branch() -> None:
    patterns = tuple(map(parse_pattern, ["bot", "bots", "boa", "a\\.b", "^x"]))
    assert any_of(patterns) == "(?d)(?:^x)|(?:a\\.b|bo(?:a|t))"
