"""Thousands of requests that are nearly right, to all APIs, over a few connections.

Each is answered, and never with an error that the broker did not foresee; nobody else notices, and
the broker starts again from all that they have led to.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.protocol.values import versions_of
from tests.system.attacks import Bystander, Peer, bystander
from tests.system.plausible import TOPICS, PlausibleValues, error_codes
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import decode_response, encode_request
from tidemark.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidemark.protocol.registry import APIS
from tidemark.testing.process import BrokerProcess, open_broker_process

CONNECTIONS = 4
ROUNDS = 100
ENDS_ITS_CONNECTION = {"SaslHandshake", "SaslAuthenticate"}
"""At a listener without users, as with Kafka."""
CALLED_MORE_OFTEN = {
    **dict.fromkeys(("Produce", "JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat"), 5),
    **dict.fromkeys(("InitProducerId", "AddPartitionsToTxn", "EndTxn", "TxnOffsetCommit"), 5),
    **dict.fromkeys(("Fetch", "Heartbeat", "OffsetCommit", "WriteTxnMarkers"), 3),
}
CALLED = [api for api in APIS.values() if api.name not in ENDS_ITS_CONNECTION]
WEIGHTS = [CALLED_MORE_OFTEN.get(api.name, 1) for api in CALLED]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One of its own, for what is done to its topics and settings."""
    settings = {
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "100",
    }
    folder = tmp_path_factory.mktemp("plausible") / "data"
    with open_broker_process(folder, settings=settings) as process:
        with Peer(process.bootstrap) as peer:
            # Of a group and of a transaction, as clients do: that makes the coordinators' topics.
            for kind in (0, 1):
                asked = FindCoordinatorRequest(key="somebody", key_type=kind)
                peer.ask(asked, 2, FindCoordinatorResponse)
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


def ask(peers: list[Peer], values: PlausibleValues) -> None:
    """A request over each connection, and then their answers: some wait for each other."""
    random = values.random
    asked = []
    for peer in peers:
        api = random.choices(CALLED, WEIGHTS)[0]
        version = random.choice([v for v in versions_of(api.request) if api.speaks(v)])
        request = values.request(api.request, version)
        peer.send(encode_request(request, version, 7, "plausible"))
        asked.append((peer, api, version, request))
    for peer, api, version, request in asked:
        try:
            correlation_id, answer = decode_response(api, version, peer.read_frame())
        except EOFError:
            pytest.fail(f"the broker hung up on version {version} of {request}")
        assert correlation_id == 7
        assert ErrorCode.UNKNOWN_SERVER_ERROR not in error_codes(answer), (version, request, answer)
        values.learn(request, answer)


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
            ask(peers, values)
    assert broker.is_running
