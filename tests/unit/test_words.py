"""The phrases that this repository avoids are found wherever they are written."""

import pytest

from infra.words import INSTEAD, hits


@pytest.mark.parametrize(
    "text",
    [
        "Each change is told in the log.",
        "Held against the rules.",
        "It holds new events against them.",
        "A table that goes by the wall clock.",
        "Counted as far\nas silver has them.",
        "None: there is none.",
        "given those that\n# there are",
        "if nothing moves for so long",
        "Judged anew.",
        "The file lies beside the table.",
        "conversions of which no touch can come any more",
        '"""What the page shows."""',
    ],
)
def test_each_phrase_is_found_once_also_across_lines(text: str) -> None:
    assert len(hits("docs/page.md", text)) == 1


def test_a_hit_says_where_it_is_what_it_is_and_what_to_write_instead() -> None:
    assert hits("docs/page.md", "One.\nJudged anew.\n") == [f"docs/page.md:2: anew -> {INSTEAD[r'anew']}"]


@pytest.mark.parametrize(
    "text", ["file.tell()", "for so long that it was cleaned", "so long as it runs", "besides these", "a storyteller"]
)
def test_other_uses_of_the_words_are_left_alone(text: str) -> None:
    assert hits("docs/page.md", text) == []


def test_the_few_right_uses_are_listed_by_file() -> None:
    text = "Only an experiment tells that."
    assert hits("docs/credit.md", text, right={("docs/credit.md", "tells")}) == []
    assert len(hits("docs/page.md", text, right={("docs/credit.md", "tells")})) == 1
