"""The functions of the language, each declared once."""

from spark_jobs.mapping.declare import Function
from spark_jobs.mapping.functions import codes, forms, numeric, patterns, text, time

SECTIONS: dict[str, tuple[Function, ...]] = {
    "Logic": forms.FUNCTIONS,
    "Numbers": numeric.FUNCTIONS,
    "Text": text.FUNCTIONS,
    "Patterns and lists": patterns.FUNCTIONS,
    "Encodings, hashes and JSON": codes.FUNCTIONS,
    "Times": time.FUNCTIONS,
}
"""By the heading in the docs."""

FUNCTIONS: dict[str, Function] = {
    name: function
    for functions in SECTIONS.values()
    for function in functions
    for name in (function.name, *function.aliases)
}
"""By name and alias."""
