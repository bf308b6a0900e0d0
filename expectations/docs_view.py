"""The look of a Data Docs page: Great Expectations' content in adloom's frame, without external resources."""

from typing import Any

from great_expectations.render.view import DefaultJinjaPageView
from jinja2 import ChoiceLoader, PackageLoader


class LakePageView(DefaultJinjaPageView):  # type: ignore[misc] # the base has no types
    """A page of the Data Docs in adloom's own template."""

    _template = "data_docs_page.html.j2"

    def __init__(self, **directories: Any) -> None:
        super().__init__(**directories)
        self.env.loader = ChoiceLoader([PackageLoader("expectations", "templates"), self.env.loader])

    def render(self, document: Any, template: str | None = None, **values: Any) -> str:
        """The page for ``document`` as HTML."""
        page: str = super().render(document, template, **values)
        # Great Expectations has no asset name for a DataFrame and would print "None".
        return page.replace("Data asset: None<br>", "")
