"""The report pages, as Jinja templates in this folder."""

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


def load_template(name: str) -> Template:
    """The template ``name``; its variables are escaped."""
    environment = Environment(
        loader=PackageLoader("expectations", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: f"{value:,}"
    return environment.get_template(name)
