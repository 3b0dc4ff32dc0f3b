"""kafka-python's clients, and topics made by them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic


@contextmanager
def admin(bootstrap: str) -> Iterator[Any]:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
        yield client


@contextmanager
def producer(bootstrap: str, **settings: object) -> Iterator[Any]:
    with closing(KafkaProducer(bootstrap_servers=bootstrap, **settings)) as client:
        yield client


@contextmanager
def consumer(bootstrap: str, *topics: str, **settings: object) -> Iterator[Any]:
    client = KafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=15_000,
        **settings,
    )
    with closing(client):
        if "group_id" in settings:
            # A leader that learns of partitions while it joins joins once more, which kafka-python
            # 3.0.12 forgets when its poll ends first. So it learns of them before.
            for topic in topics:
                client.partitions_for_topic(topic)
        yield client


def create(
    bootstrap: str, topic: str, partitions: int = 1, configs: dict[str, str] | None = None
) -> None:
    with admin(bootstrap) as client:
        client.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})])
