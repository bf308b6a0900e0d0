"""Models of credit: golden paths, and what holds for any path."""

import re
from datetime import timedelta
from decimal import Decimal, localcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from spark_jobs.config.choices import CreditModel, CreditViews, TouchKind
from spark_jobs.config.durations import microseconds
from spark_jobs.config.sections import CreditSettings
from spark_jobs.credit.plan import DECAY_BITS, DECAY_STEPS
from tests.support.credit_models import DECAY, Touch, shares, weights

_DAY_US = 86_400_000_000
_WEEK = timedelta(days=7)
_HIGHEST = 2**63 - 1
_DOCS = Path(__file__).parents[2] / "docs" / "credit.md"


def _path(text: str) -> list[Touch]:
    """``view14 click7``: a view 14 days before the last touch could be, and a click 7 days before."""
    found = re.findall(r"(click|view)(\d+)", text)
    return [Touch(TouchKind(kind), (100 - int(days)) * _DAY_US) for kind, days in found]


def _shared(path: str, value: int) -> dict[str, list[int]]:
    touches = _path(path)
    return {model.value: shares(value, weights(model, touches, _WEEK)) for model in CreditModel}


@pytest.mark.parametrize(
    ("path", "value", "due"),
    [
        pytest.param("", 0, [[]] * 6, id="no touch"),
        pytest.param("click0", 100, [[100]] * 6, id="one click"),
        pytest.param("view3", 1, [[1]] * 6, id="one view"),
        pytest.param("click7 view0", 100, [[0, 100], [100, 0], [100, 0], [50, 50], [50, 50], [33, 67]], id="two"),
        pytest.param(
            "click1 click1", 101, [[0, 101], [101, 0], [0, 101], [51, 50], [51, 50], [51, 50]], id="two at one instant"
        ),
        pytest.param(
            "view14 view7 view0",
            100,
            [
                *([0, 0, 100], [100, 0, 0], [0, 0, 100]),
                *([34, 33, 33], [40, 20, 40], [14, 29, 57]),
            ],
            id="three views",
        ),
        pytest.param(
            "click7 click0 view0",
            100,
            [
                *([0, 0, 100], [100, 0, 0], [0, 100, 0]),
                *([34, 33, 33], [40, 20, 40], [20, 40, 40]),
            ],
            id="three, the last two at one instant",
        ),
        pytest.param(
            "view21 click14 click7 view0",
            100,
            [
                *([0, 0, 0, 100], [100, 0, 0, 0], [0, 0, 100, 0]),
                *([25, 25, 25, 25], [40, 10, 10, 40], [7, 13, 27, 53]),
            ],
            id="four",
        ),
        pytest.param(
            "click28 view21 view14 view7 view0",
            -7,
            [
                *([0, 0, 0, 0, -7], [-7, 0, 0, 0, 0], [-7, 0, 0, 0, 0]),
                *([-2, -2, -1, -1, -1], [-3, -1, 0, 0, -3], [0, 0, -1, -2, -4]),
            ],
            id="five of a refund",
        ),
        pytest.param("view9 click2 click1", 0, [[0, 0, 0]] * 6, id="three of no value"),
    ],
)
def test_a_golden_path_is_shared_as_written(path: str, value: int, due: list[list[int]]) -> None:
    """``due`` has the shares by each model, in their order."""
    assert list(_shared(path, value).values()) == due


def test_the_example_in_the_docs_says_what_is_computed() -> None:
    text = _DOCS.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (-?\d+) \| (-?\d+) \| (-?\d+) \|$", text, re.MULTILINE)
    assert {model: [int(part) for part in parts] for model, *parts in rows} == _shared("click14 click7 view0", 100)


_TOUCHES = st.lists(
    st.builds(Touch, st.sampled_from(TouchKind), st.integers(0, 400 * _DAY_US)), min_size=1, max_size=12
).map(lambda touches: sorted(touches, key=lambda touch: touch.time_us))
_VALUES = st.integers(0, 20) | st.integers(-_HIGHEST, _HIGHEST) | st.sampled_from([_HIGHEST, -_HIGHEST])
_HALF_LIVES = st.integers(1, 60 * 86_400_000).map(lambda milliseconds: timedelta(milliseconds=milliseconds))


@given(model=st.sampled_from(CreditModel), touches=_TOUCHES, half_life=_HALF_LIVES, value=_VALUES)
def test_shares_add_up_and_are_off_by_less_than_one(
    model: CreditModel, touches: list[Touch], half_life: timedelta, value: int
) -> None:
    weighed = weights(model, touches, half_life)
    parts, total = shares(value, weighed), sum(weighed)
    assert sum(parts) == value
    assert all(abs(part * total - value * weight) < total for part, weight in zip(parts, weighed, strict=True))
    assert [part for part, weight in zip(parts, weighed, strict=True) if part and not weight] == []
    assert shares(-value, weighed) == [-part for part in parts]


@given(touches=_TOUCHES, half_life=_HALF_LIVES)
def test_in_time_decay_a_touch_counts_half_of_one_that_is_a_half_life_younger(
    touches: list[Touch], half_life: timedelta
) -> None:
    weighed = weights(CreditModel.TIME_DECAY, touches, half_life)
    assert weighed == sorted(weighed)
    last = touches[-1]
    older = [touch._replace(time_us=touch.time_us - microseconds(half_life)) for touch in touches]
    halved = weights(CreditModel.TIME_DECAY, [*older, last], half_life)
    assert halved == [*(weight // 2 for weight in weighed), 2**DECAY_BITS]


def test_each_step_of_the_decay_is_the_exact_power_rounded_and_no_error_of_a_double_rounds_it_otherwise() -> None:
    with localcontext() as context:
        context.prec = 50
        exact = [Decimal(2) ** (DECAY_BITS - Decimal(step) / DECAY_STEPS) for step in range(DECAY_STEPS)]
        assert tuple(int(power.to_integral_value()) for power in exact) == DECAY
        # Doubles of this size are 2 to the minus 20 apart.
        assert min(abs(power % 1 - Decimal("0.5")) for power in exact) > 20 * Decimal(2) ** -20


def test_the_settings_take_models_as_text_and_refuse_what_would_count_wrongly() -> None:
    own = CreditSettings.model_validate({"models": "linear, last_touch", "views": "never", "view_lookback": "30d"})
    assert own.models == (CreditModel.LINEAR, CreditModel.LAST_TOUCH)
    assert own.views is CreditViews.NEVER
    with pytest.raises(ValidationError, match=r"credit\.view_lookback 2d exceeds credit\.click_lookback 1d"):
        CreditSettings.model_validate({"view_lookback": "2d", "click_lookback": "1d"})
    with pytest.raises(ValidationError, match=r"credit\.models has linear twice"):
        CreditSettings.model_validate({"models": "linear,last_touch,linear"})
