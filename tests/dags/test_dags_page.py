"""The page of the DAGs in the docs is the one that the DAGs give."""

from infra.docs.dags_page import dags_page
from infra.docs.generate import DAGS_PAGE, DOCS


def test_the_page_of_the_dags_is_the_one_that_they_give() -> None:
    assert (DOCS / DAGS_PAGE).read_text() == dags_page(), "run: make docs"
