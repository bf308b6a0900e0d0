"""Which paths of a record are read in one pass, and which one by one."""

import pytest

from spark_jobs.mapping.objects import Objects
from spark_jobs.mapping.paths import Path, parse_path


def _paths(*texts: str) -> list[Path]:
    return [parse_path(text) for text in texts]


@pytest.mark.parametrize(
    ("texts", "together", "type_sql"),
    [
        pytest.param(
            ["$.a", "$.b.c", "$.b.d"], [0, 1, 2], "struct<`a`: string, `b`: struct<`c`: string, `d`: string>>"
        ),
        pytest.param(["$.a", "$.a.b"], [0], "struct<`a`: string>", id="a-value-and-what-is-below-it"),
        pytest.param(["$.a.b", "$.a"], [0], "struct<`a`: struct<`b`: string>>", id="the-other-way-round"),
        pytest.param(["$.a[0]", "$.a"], [1], "struct<`a`: string>", id="an-index"),
        pytest.param(["$.a.b[0].c", "$.a.d"], [1], "struct<`a`: struct<`d`: string>>", id="an-index-further-down"),
        pytest.param(["$.Id", "$.id"], [0], "struct<`Id`: string>", id="keys-that-differ-by-case-alone"),
        pytest.param(["$.a.B", "$.a.b"], [0], "struct<`a`: struct<`B`: string>>", id="the-same-further-down"),
        pytest.param(["$['a`b c']"], [0], "struct<`a``b c`: string>", id="a-key-with-a-backtick"),
        pytest.param(["$.a[0]"], [], "struct<>", id="none"),
    ],
)
def test_paths_are_read_together_where_one_struct_holds_them(
    texts: list[str], together: list[int], type_sql: str
) -> None:
    paths = _paths(*texts)
    objects = Objects.of(paths)
    assert objects.paths == {paths[number] for number in together}
    assert objects.type_sql == type_sql


def test_a_value_is_named_by_its_keys() -> None:
    (path,) = _paths("$.a['b c']")
    assert Objects.value_sql("fields", path) == "fields.`a`.`b c`"
