"""Writer schemas by id: from the lake, else from the registry."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from spark_jobs.config.sections import RegistrySettings
from spark_jobs.errors import LakeError, RegistryError
from spark_jobs.formats.refusal import Refused, unknown
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.schema import Schema
from spark_jobs.lake.store.files import Files
from spark_jobs.places import SCHEMAS

_UNKNOWN_S = 10.0
"""How long the registry is not asked again for an id that it did not have."""
_MOST_ASKED = 100
"""Of ids that the registry did not have, how many it is asked for within that time: garbage has thousands of them."""
_unknown: dict[tuple["SchemaStore", int], tuple[float, Refused]] = {}
"""The ids that the registry did not have, in this process."""
_clients: dict["SchemaStore", RegistryClient] = {}
"""Those of this process: to read the certificates takes as long as thirty answers."""


@dataclass(frozen=True)
class SchemaStore:
    """Writer schemas by id. It travels to the workers of a cluster, so it opens nothing before it is asked.

    The ids are those of one registry: a lake whose registry is replaced by one with other ids must not read records of
    the old one with it.

    Attributes:
        settings: of the registry. Without an address, only schemas that are in the lake are known.
        open_files: opens the lake's files in the process that asks; None: nothing is kept.
    """

    settings: RegistrySettings
    open_files: Callable[[], Files] | None = None

    def get(self, schema_id: int) -> Schema:
        """The schema with this id. One that the registry gave is written to the lake before it is used.

        Raises:
            Refused: with ``unknown_schema``: the registry has no such schema.
            RegistryError: it is not in the lake, and the registry refuses to answer or has been away for too long.
            LakeError: the lake cannot be read or written.
        """
        if (found := _unknown.get((self, schema_id))) and found[0] > time.monotonic():
            # A new one each time: a raised exception keeps growing by its traceback.
            raise Refused(found[1].verdict, found[1].reason)
        files = self.open_files() if self.open_files else None
        key = f"{SCHEMAS}/{schema_id}.json"
        if files and (stored := files.read(key)):
            return _read(stored, key)
        if not self.settings.url:
            raise RegistryError(f"schema {schema_id} is not in the lake, and there is no registry: set registry.url")
        if self._asked_in_vain() >= _MOST_ASKED:
            raise unknown(
                f"the registry was not asked for schema {schema_id}: it did not have {_MOST_ASKED} others within "
                f"{_UNKNOWN_S:.0f} s; if it has this one, requeue the record"
            )
        try:
            schema = self._client().schema(schema_id)
        except Refused as refused:
            _unknown[self, schema_id] = time.monotonic() + _UNKNOWN_S, refused
            raise
        if files:
            files.write(key, schema.to_json())
        return schema

    def _client(self) -> RegistryClient:
        if self not in _clients:
            _clients[self] = RegistryClient(self.settings)
        return _clients[self]

    def _asked_in_vain(self) -> int:
        """How many ids the registry did not have a short while ago; what is older is forgotten."""
        now = time.monotonic()
        for key in [key for key, (until, _) in _unknown.items() if until <= now]:
            del _unknown[key]
        return sum(store == self for store, _ in _unknown)


def _read(stored: bytes, key: str) -> Schema:
    try:
        return Schema.from_json(stored)
    except ValueError as error:
        raise LakeError(f"{key} in the lake is damaged ({error}); delete it: the registry is asked again") from error
