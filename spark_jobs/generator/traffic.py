"""A spec's traffic as a stream of lines in order of arrival."""

from collections.abc import Iterator

from spark_jobs.generator.daycurve import DayCurve
from spark_jobs.generator.delivery import Delivery
from spark_jobs.generator.reorder import ReorderBuffer
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.visits import Visits


class Traffic:
    """The stream of a spec, to be read once. What it holds depends on how busy the traffic is, not on how long."""

    def __init__(self, spec: GeneratorSpec) -> None:
        curve = DayCurve(spec.start, spec.span)
        self._buffer = ReorderBuffer(curve.begin)
        self.visits = Visits(spec, curve)
        self.delivery = Delivery(spec, curve, self._buffer)

    @property
    def pending(self) -> int:
        """How many records are made and not given out yet."""
        return len(self._buffer) + self.delivery.held

    def chunks(self) -> Iterator[list[bytes]]:
        """The lines in order of arrival, line ends included, in lists of some seconds each."""
        for visit in self.visits:
            self.delivery.send(visit)
            if lines := self._buffer.pop_before(visit[0][0]):
                yield lines
        yield self._buffer.pop_all()
