"""TEXT in Python: what Spark's functions of text do."""

_MIN_INT, MAX_INT = -(2**31), 2**31 - 1


def is_int(value: int) -> bool:
    """Whether Spark's ``int`` holds it."""
    return _MIN_INT <= value <= MAX_INT


def substring(text: str, position: int, length: int = MAX_INT) -> str | None:
    """From a position, counted from 1, or from the end if it is negative; None beyond 32 bits."""
    if not (is_int(position) and is_int(length)):
        return None
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + length, 0)]


def left(text: str, count: int) -> str | None:
    """The first characters; None beyond 32 bits."""
    return text[: max(count, 0)] if is_int(count) else None


def right(text: str, count: int) -> str | None:
    """The last characters; None beyond 32 bits."""
    if not is_int(count):
        return None
    return text[-count:] if count > 0 else ""


def replaced(text: str, search: str, replacement: str) -> str:
    """Every occurrence replaced; Spark finds no empty ones."""
    return text.replace(search, replacement) if search else text


def concat_ws(separator: str | None, *texts: str | None) -> str | None:
    """Those that are not null, joined."""
    return None if separator is None else separator.join(text for text in texts if text is not None)


def padded(text: str, length: int, padding: str, *, on_the_left: bool) -> str:
    """Filled up or cut off to the length."""
    missing = length - len(text)
    if missing <= 0:
        return text[:length]
    filled = (padding * (missing // len(padding) + 1))[:missing]
    return filled + text if on_the_left else text + filled


def split_part(text: str, separator: str, number: int) -> str:
    """The part with a number, counted from 1, or from the end if it is negative."""
    parts = text.split(separator)
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""
