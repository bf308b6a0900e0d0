"""The faults of ``make mutants``: each is valid code that differs, and the draw is the same whatever lies around."""

import ast

import pytest

from tests.mutants.mutations import draw, mutations_in

_SOURCE = '''
"""A module."""
def first(rows, a, b):
    """One."""
    if a <= b and not a:
        return (a) + 1
    return F.min(rows) & ~F.col("é").isNull()


class Two:
    def second(self, a):
        log.info(a < 1)
        zip(a, a, strict=True)
        return self.run(f"""SELECT {a}
          FROM x LEFT JOIN y WHERE u <= v AND w > {a - 1}""", how="left_anti", keep=True)
'''


def _all() -> list[tuple[str, str]]:
    return [(one.before, one.after) for found in mutations_in("m.py", _SOURCE).values() for one in found]


@pytest.mark.parametrize(
    "fault",
    [
        ("<=", "<"),
        ("and", "or"),
        ("not ", ""),
        ("+", "-"),
        ("1", "2"),
        ("min", "max"),
        ("&", "|"),
        ("~", ""),
        ("isNull", "isNotNull"),
        ("LEFT JOIN", "JOIN"),
        ("AND", "OR"),
        (">", ">="),
        ('"left_anti"', '"left_semi"'),
        ("True", "False"),
    ],
)
def test_each_kind_of_fault_is_found(fault: tuple[str, str]) -> None:
    assert fault in _all()


def test_each_fault_is_valid_code_that_differs() -> None:
    for found in mutations_in("m.py", _SOURCE).values():
        for one in found:
            assert ast.dump(ast.parse(one.applied(_SOURCE))) != ast.dump(ast.parse(_SOURCE)), one


def test_what_changes_no_row_is_left_alone() -> None:
    assert not any("zip" in statement for statement in mutations_in("m.py", _SOURCE))
    assert not any("log.info" in statement for statement in mutations_in("m.py", _SOURCE))


def test_the_draw_does_not_change_with_the_code_around() -> None:
    moved = "import os\n\n\n" + _SOURCE
    before, after = (draw(mutations_in("m.py", text), 3, seed=37) for text in (_SOURCE, moved))
    assert [one.key for one in before] == [one.key for one in after]
    assert len({one.statement for one in before}) == 3


def test_a_fault_refuses_other_text() -> None:
    fault = next(iter(mutations_in("m.py", _SOURCE).values()))[0]
    with pytest.raises(ValueError, match="is there, not"):
        fault.applied("x" * len(_SOURCE))
