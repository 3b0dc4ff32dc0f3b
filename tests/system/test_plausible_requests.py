"""Thousands of requests that are nearly right, to all APIs, over a few connections.

Each is answered, and never with an error that the broker did not foresee; nobody else notices, and
the broker starts again from all that they have led to.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.system.asking import ask, draw, find_coordinators
from tests.system.attacks import Bystander, Peer, bystander
from tests.system.plausible import TOPICS, PlausibleValues, error_codes
from tidemark.protocol.errors import ErrorCode
from tidemark.testing.process import BrokerProcess, open_broker_process

CONNECTIONS = 4
ROUNDS = 100
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}


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


@pytest.fixture(scope="module", autouse=True)
def other(broker: BrokerProcess) -> Iterator[Bystander]:
    with bystander(broker.bootstrap, "bystander") as client:
        yield client


def make_topics(bootstrap: str) -> None:
    """Those that are gone, for requests delete them."""
    with Peer(bootstrap) as peer:
        for topic in TOPICS:
            if peer.fetch(topic).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                peer.create_topic(topic)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_nearly_right_is_answered_as_foreseen(broker: BrokerProcess, seed: int) -> None:
    values = PlausibleValues(seed)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(broker.bootstrap)) for _ in range(CONNECTIONS)]
        for number in range(ROUNDS):
            if number % 10 == 0:
                make_topics(broker.bootstrap)
            for each in ask(peers, draw(values.random, len(peers)), values):
                assert ErrorCode.UNKNOWN_SERVER_ERROR not in error_codes(each.answer), each
    assert broker.is_running
