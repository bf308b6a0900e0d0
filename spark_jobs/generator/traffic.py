"""The traffic of a spec, as a stream of lines in order of arrival."""

from collections.abc import Callable, Iterator

from spark_jobs.generator.daycurve import DayCurve
from spark_jobs.generator.delivery import Delivery
from spark_jobs.generator.reorder import ReorderBuffer
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.visits import Visits


class Traffic:
    """The stream of a spec; read it once. Memory grows with how busy the traffic is, not with how long it lasts."""

    def __init__(self, spec: GeneratorSpec, on_label: Callable[[bytes], object] = lambda _: None) -> None:
        """``on_label`` is called with the label of each event that a bot makes, a line of JSON."""
        curve = DayCurve(spec.start, spec.span)
        self._buffer = ReorderBuffer(curve.begin)
        self.visits = Visits(spec, curve, on_label)
        self.delivery = Delivery(spec, curve, self._buffer)

    @property
    def pending(self) -> int:
        """How many records are generated but not yet returned."""
        return len(self._buffer) + self.delivery.held

    def chunks(self) -> Iterator[list[bytes]]:
        """The lines in order of arrival, line ends included, in lists of a few seconds each."""
        for visit in self.visits:
            self.delivery.send(visit)
            if lines := self._buffer.pop_before(visit[0][0]):
                yield lines
        yield self._buffer.pop_all()
