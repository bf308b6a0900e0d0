"""Conversions: what clicks lead to, hours later; orders that are reported twice, and refunds."""

from random import Random

from spark_jobs.contract.events import CONVERSION
from spark_jobs.generator import lines
from spark_jobs.generator.chance import TABLE_SIZE, Ids, lognormal_table
from spark_jobs.generator.due import Due, Planned
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.timetext import write_time

_SECOND = 1_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND
_SOONEST = 5 * _SECOND
_DELAY = lognormal_table(25 * _MINUTE, 1.6)
_VALUE = lognormal_table(38_000_000, 0.9)
_CENT = 10_000
_PURCHASE_SHARE, _LEAD_SHARE = 0.7, 0.1
"""Of conversions: with an order and a value; with a value only. The rest is signups, which have neither."""
_DOLLAR_SHARE = 0.1
_REPEATED_SHARE, _REVOKED_SHARE = 0.05, 0.04
"""Of purchases."""
_AGAIN, _REVOKING = "again", "revoking"
"""Kinds of conversions that are counted."""
_REPEAT = (2 * _SECOND, 3 * _HOUR)
_REFUND = (10 * _MINUTE, 12 * _HOUR)


class Conversions:
    """The conversions of a spec. They draw from a random generator of their own.

    ``made`` counts those that were taken when they were due; of these, ``repeats`` have the order of an earlier one,
    and ``refunds`` revoke an earlier one.
    """

    def __init__(self, spec: GeneratorSpec, due: Due) -> None:
        self.made = self.repeats = self.refunds = 0
        rng = Random(f"{spec.seed}/conversions")
        self._share, self._random, self._ids = spec.conversions, rng.random, Ids(rng)
        self._due = due

    def follow(self, user: str, clicked: int, device: str) -> None:
        """Lets ``user`` convert some time after a click, or not; ``device`` is that of the click."""
        random = self._random
        # Without a draw, so that traffic without conversions costs nothing.
        if not self._share or random() >= self._share:
            return
        moment = clicked + _SOONEST + _DELAY[int(random() * TABLE_SIZE)]
        kind = random()
        if kind >= _PURCHASE_SHARE + _LEAD_SHARE:
            self._add(moment, user, '"conversion_type":"signup","value_micros":0', device)
            return
        currency = "USD" if random() < _DOLLAR_SHARE else "EUR"
        value = _VALUE[int(random() * TABLE_SIZE)]
        worth = f'"value_micros":{value - value % _CENT},"currency":"{currency}"'
        if kind >= _PURCHASE_SHARE:
            self._add(moment, user, f'"conversion_type":"lead",{worth}', device)
            return
        fields = f'"conversion_type":"purchase",{worth},"order_id":"ord-{self._ids.next()}"'
        self._purchase(moment, user, fields, device)

    def count(self, kind: str) -> None:
        """Counts a conversion that was taken."""
        self.made += 1
        self.repeats += kind == _AGAIN
        self.refunds += kind == _REVOKING

    def _purchase(self, moment: int, user: str, fields: str, device: str) -> None:
        random = self._random
        event_id = self._add(moment, user, fields, device)
        if random() < _REPEATED_SHARE:
            self._add(moment + self._between(_REPEAT), user, fields, device, _AGAIN)
        if random() < _REVOKED_SHARE:
            revoking = f'{fields},"revokes":"{event_id}"'
            self._add(moment + self._between(_REFUND), user, revoking, device, _REVOKING)

    def _between(self, bounds: tuple[int, int]) -> int:
        soonest, latest = bounds
        return soonest + int(self._random() * (latest - soonest))

    def _add(self, moment: int, user: str, fields: str, device: str, kind: str = "") -> str:
        """Adds a conversion with ``fields``, which are JSON text; returns its id."""
        moment, text = write_time(moment, self._random)
        event_id = f"cnv-{self._ids.next()}"
        line = lines.conversion(event_id, text, user, fields, device)
        self._due.add(Planned(moment, line, CONVERSION, kind))
        return event_id
