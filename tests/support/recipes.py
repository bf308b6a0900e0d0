"""The recipes of docs/events.md: settings, records as they arrive, and the events that the page shows."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from spark_jobs.config.encoding import RecordFormat
from spark_jobs.config.settings import Settings
from spark_jobs.formats.csv_text import CsvDecoder
from spark_jobs.formats.decoding import Decoded
from spark_jobs.formats.schema_store import SchemaStore
from spark_jobs.formats.sources import decoders
from tests.support.avro_schemas import encoded
from tests.support.fake_registry import FakeRegistry

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w+)\n(.*?)\n```", re.DOTALL)
_AT_REGISTRY = 7


@dataclass(frozen=True)
class Recipe:
    """A recipe.

    Attributes:
        name: its heading.
        settings: those it shows.
        records: each as it arrives; of formats other than JSON, what was decoded from it.
        events: those it shows, by field, in the order of the records; a field that the page leaves out is missing.
    """

    name: str
    settings: Settings
    records: tuple[bytes | Decoded, ...]
    events: tuple[dict[str, Any], ...]


def recipes() -> Iterator[Recipe]:
    """All of the page."""
    for part in PAGE.partition("## Recipes")[2].split("### ")[1:]:
        name, _, text = part.partition("\n")
        yield _recipe(name.strip(), text)


def plain(event: dict[str, Any]) -> dict[str, Any]:
    """``event`` as the page shows it: without nulls and defaults, times as text."""
    left_out = ["cost_micros"] if event["event_type"] != "impression" else []
    left_out += ["is_last"] if not event["is_last"] else []
    return {name: _plain(value) for name, value in event.items() if value is not None and name not in left_out}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value


def _recipe(name: str, text: str) -> Recipe:
    found = BLOCK.findall(text)
    blocks = {kind: block for kind, block in reversed(found) if kind != "json"}
    texts = [block for kind, block in found if kind == "json"]
    settings = Settings.model_validate(tomllib.loads(blocks["toml"]))
    records = (texts[0] if len(texts) > 1 else blocks["tsv"]).splitlines()
    received = tuple(_received(settings, records, blocks.get("avsc")))
    return Recipe(name, settings, received, tuple(json.loads(line) for line in texts[-1].splitlines()))


def _received(settings: Settings, records: list[str], schema: str | None) -> Iterator[bytes | Decoded]:
    """``records`` as they arrive, and decoded if they are not JSON."""
    (source, *others) = settings.sources.values()
    if source.format is RecordFormat.CSV:
        yield from (CsvDecoder(source.encoding).decode(line.encode()) for line in records)
    elif schema:
        with FakeRegistry().running() as registry:
            registry.add(_AT_REGISTRY, json.loads(schema))
            schemas = SchemaStore(settings.registry.model_copy(update={"url": (registry.url,)}))
            decoder = decoders(settings, schemas)[source.topics[0]]
            head = b"\0" + _AT_REGISTRY.to_bytes(4, "big")
            yield from (decoder.decode(head + encoded(json.loads(schema), _typed(line))) for line in records)
    else:
        assert all(one.format is RecordFormat.JSON for one in (source, *others))
        yield from (line.encode() for line in records)


def _typed(line: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(line)
    return {**record, "at": datetime.fromisoformat(record["at"]), "price": Decimal(record["price"])}
