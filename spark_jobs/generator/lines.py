"""Events as lines of JSON in adloom's own format.

``time`` is the text of ``event_time``. ``device`` is JSON text that begins with a comma, or empty; ``ad``, ``data`` and
``fields`` are JSON text, too.
"""


def impression(event_id: str, time: str, user: str, ad: str, cost: int, device: str) -> bytes:
    """The line of an impression; ``ad`` has the fields of campaign and ad."""
    return (
        f'{{"event_type":"impression","event_id":"{event_id}","event_time":"{time}","user_id":"{user}",{ad},'
        f'"cost_micros":{cost}{device}}}\n'
    ).encode()


def click(event_id: str, time: str, user: str, impression_id: str, device: str) -> bytes:
    """The line of a click."""
    return (
        f'{{"event_type":"click","event_id":"{event_id}","event_time":"{time}","user_id":"{user}",'
        f'"impression_id":"{impression_id}"{device}}}\n'
    ).encode()


def activity(event_id: str, time: str, user: str, data: str, device: str) -> bytes:
    """The line of an activity; ``data`` may be followed by more fields."""
    return (
        f'{{"event_type":"activity","event_id":"{event_id}","event_time":"{time}","user_id":"{user}",'
        f'"data":{data}{device}}}\n'
    ).encode()


def conversion(event_id: str, time: str, user: str, fields: str, device: str) -> bytes:
    """The line of a conversion with ``fields``."""
    return (
        f'{{"event_type":"conversion","event_id":"{event_id}","event_time":"{time}","user_id":"{user}",'
        f"{fields}{device}}}\n"
    ).encode()
