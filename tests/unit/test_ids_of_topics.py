"""librdkafka and Java write the same id of a topic, whichever bits it has."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid

from spark_jobs.config.sections import KafkaSettings
from spark_jobs.errors import SourceError
from spark_jobs.ingest import samples

_SETTINGS = KafkaSettings(bootstrap_servers="k:1", topics=("ads", "web", "old"))
_ID = Uuid(-584066000908761586, 8818993833992921084)


def _answers(monkeypatch: pytest.MonkeyPatch, **answers: Uuid | KafkaException) -> None:
    def describe_topics(_: TopicCollection, **_options: float) -> dict[str, "Future[SimpleNamespace]"]:
        futures: dict[str, Future[SimpleNamespace]] = {name: Future() for name in answers}
        for name, answer in answers.items():
            if isinstance(answer, KafkaException):
                futures[name].set_exception(answer)
            else:
                futures[name].set_result(SimpleNamespace(topic_id=answer))
        return futures

    monkeypatch.setattr(samples, "AdminClient", lambda _: SimpleNamespace(describe_topics=describe_topics))


def test_an_id_is_written_as_java_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    _answers(monkeypatch, ads=_ID, web=unknown, old=Uuid(0, 0))
    assert str(_ID) == "9+T7ERJzRg56Y1wqv4If/A"
    assert samples.ids_of_topics(_SETTINGS) == {"ads": "9-T7ERJzRg56Y1wqv4If_A"}


def test_brokers_that_are_away_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _answers(monkeypatch, ads=KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    with pytest.raises(SourceError, match="Kafka at k:1 does not answer"):
        samples.ids_of_topics(_SETTINGS)
