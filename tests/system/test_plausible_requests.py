"""Requests that are nearly right, to all APIs, many hundreds over a few connections.

Each is answered, and never with an error that the broker did not foresee; nobody else notices, and
the broker starts again from all that they have led to.
"""

from collections.abc import Iterator

import pytest

from tests.broker.access.asked import codes
from tests.system.asking import SETTINGS, ask, draw, find_coordinators, open_peers
from tests.system.attacks import Peer
from tests.system.plausible import TOPICS, PlausibleValues
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidemark.testing.process import BrokerProcess, open_broker_process

pytestmark = pytest.mark.usefixtures("other")

ROUNDS = 100


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One of its own, for what is done to its topics and settings."""
    folder = tmp_path_factory.mktemp("plausible") / "data"
    with open_broker_process(folder, settings=SETTINGS) as process:
        find_coordinators(process.bootstrap)
        yield process
        process.kill()
        process.start()
        with Peer(process.bootstrap) as peer:
            assert peer.fetch("bystander").error_code == ErrorCode.NONE
        assert "Traceback" not in process.log
        assert process.stop() == 0


def values_from(seed: int, bootstrap: str) -> PlausibleValues:
    """Which do not name the bystander's topic: it would notice."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="bystander")])
    with Peer(bootstrap) as peer:
        (topic,) = peer.ask(asked, 12, MetadataResponse).topics
    return PlausibleValues(seed, spared=frozenset({topic.topic_id}))


def make_topics(bootstrap: str) -> None:
    """Those that are gone, for requests delete them."""
    with Peer(bootstrap) as peer:
        for topic in TOPICS:
            if peer.fetch(topic).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                peer.create_topic(topic)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_nearly_right_is_answered_as_foreseen(broker: BrokerProcess, seed: int) -> None:
    values = values_from(seed, broker.bootstrap)
    with open_peers(broker.bootstrap) as peers:
        for number in range(ROUNDS):
            if number % 10 == 0:
                make_topics(broker.bootstrap)
            for each in ask(peers, draw(values.random), values):
                assert ErrorCode.UNKNOWN_SERVER_ERROR not in codes(each.answer), each
    assert broker.is_running
