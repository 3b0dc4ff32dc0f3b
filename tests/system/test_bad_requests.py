"""Requests that parse and must not be granted."""

import pytest

from tests.system.attacks import Peer, batch, creation, rss_bytes
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import create_partitions
from tidemark.protocol.messages.create_topics import CreateTopicsResponse
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidemark.testing.process import BrokerProcess

pytestmark = pytest.mark.usefixtures("unharmed")

BAD_NAMES = (
    *("", ".", "..", "../../etc", "/etc/passwd", "a/b", "a\\b", "a\0b", "a b", "ü", "a\nb"),
    *("x" * 250, "t;rm", "%2e%2e", "{}"),
)


def test_no_name_leads_out_of_the_data_directory(victim: BrokerProcess) -> None:
    before = sorted(victim.data_dir.parent.rglob("*.log")), sorted(victim.data_dir.glob("*"))
    with Peer(victim.bootstrap) as peer:
        for name in BAD_NAMES:
            created = peer.ask(creation(name), 5, CreateTopicsResponse).topics[0]
            assert created.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION, name
            assert created.error_message
            asked = MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
            )
            found = peer.ask(asked, 9, MetadataResponse).topics[0]
            assert found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION, name
            code = peer.produce(name, batch(b"v"))
            assert code in (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.INVALID_TOPIC_EXCEPTION,
            )
    after = sorted(victim.data_dir.parent.rglob("*.log")), sorted(victim.data_dir.glob("*"))
    assert [p for p in after[1] if p not in before[1]] == []


@pytest.mark.parametrize(
    ("partitions", "code"),
    [
        (50_000, ErrorCode.POLICY_VIOLATION),
        (1_000_000, ErrorCode.INVALID_PARTITIONS),
        (2**31 - 1, ErrorCode.INVALID_PARTITIONS),
        (0, ErrorCode.INVALID_PARTITIONS),
        (-7, ErrorCode.INVALID_PARTITIONS),
    ],
)
def test_a_topic_has_as_many_partitions_as_the_broker_can_hold(
    victim: BrokerProcess, topic: str, partitions: int, code: ErrorCode
) -> None:
    memory = rss_bytes(victim.pid)
    with Peer(victim.bootstrap) as peer:
        answer = peer.ask(creation(topic, partitions), 5, CreateTopicsResponse).topics[0]
        assert answer.error_code == code, answer.error_message
        assert answer.error_message
    assert rss_bytes(victim.pid) < memory + 20 * 1024 * 1024


def test_partitions_are_added_within_the_same_limit(victim: BrokerProcess, topic: str) -> None:
    request = create_partitions.CreatePartitionsRequest(
        topics=[
            create_partitions.CreatePartitionsTopic(name=topic, count=50_000, assignments=None)
        ],
        timeout_ms=5000,
        validate_only=False,
    )
    with Peer(victim.bootstrap) as peer:
        peer.create_topic(topic)
        answer = peer.ask(request, 2, create_partitions.CreatePartitionsResponse)
        assert answer.results[0].error_code == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    "configs",
    [
        {"frobnicate": "1"},
        {"retention.ms": "soon"},
        {"cleanup.policy": "shred"},
        {"max.message.bytes": "-5"},
        {"flush": "never"},
        {"segment.bytes": "99999999999999999999"},
    ],
    ids=lambda configs: next(iter(configs)),
)
def test_a_topic_config_that_makes_no_sense_is_refused_by_name(
    victim: BrokerProcess, topic: str, configs: dict[str, str]
) -> None:
    with Peer(victim.bootstrap) as peer:
        answer = peer.ask(creation(topic, 1, configs), 5, CreateTopicsResponse).topics[0]
        assert answer.error_code == ErrorCode.INVALID_CONFIG
        assert next(iter(configs)) in (answer.error_message or "")
        assert peer.produce(topic, batch(b"v")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
