"""How a page of the Data Docs looks: Great Expectations' content in adloom's frame, nothing fetched from outside."""

from typing import Any

from great_expectations.render.view import DefaultJinjaPageView
from jinja2 import ChoiceLoader, PackageLoader


class LakePageView(DefaultJinjaPageView):  # type: ignore[misc] # the base comes without types
    """A page of the Data Docs in adloom's own template."""

    _template = "data_docs_page.html.j2"

    def __init__(self, **directories: Any) -> None:
        super().__init__(**directories)
        self.env.loader = ChoiceLoader([PackageLoader("expectations", "templates"), self.env.loader])
