"""The pages of the reports, as Jinja templates beside this module."""

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


def load_template(name: str) -> Template:
    """The template ``name``; what it is given is escaped."""
    environment = Environment(
        loader=PackageLoader("expectations", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: f"{value:,}"
    return environment.get_template(name)
