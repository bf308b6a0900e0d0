"""Texts of Spark SQL that cannot be misread."""


def quoted(text: str) -> str:
    """``text`` as a literal of Spark SQL: everything but plain ASCII is escaped."""
    return "'" + "".join(map(_escaped, text)) + "'"


def _escaped(character: str) -> str:
    code = ord(character)
    if character in "'\\":
        return "\\" + character
    if 0x20 <= code < 0x7F:  # noqa: PLR2004 what ASCII prints
        return character
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004
