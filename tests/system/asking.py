"""Plausible requests of all APIs over a few connections, and what is said to them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Final, NamedTuple

import pytest

from tests.protocol.values import versions_of
from tests.system.attacks import Peer
from tests.system.plausible import PlausibleValues
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import decode_response, encode_request
from tidemark.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidemark.protocol.registry import APIS, Api
from tidemark.protocol.schema.declaration import Message

CONNECTIONS: Final = 4
SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}
"""Of a broker that does not let those who ask it wait for long."""
_ENDS_ITS_CONNECTION: Final = {"SaslHandshake", "SaslAuthenticate"}
"""At a listener without users, as with Kafka."""
_CALLED_MORE_OFTEN: Final = {
    **dict.fromkeys(("Produce", "JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat"), 5),
    **dict.fromkeys(("InitProducerId", "AddPartitionsToTxn", "EndTxn", "TxnOffsetCommit"), 5),
    **dict.fromkeys(("Fetch", "Heartbeat", "OffsetCommit", "WriteTxnMarkers"), 3),
}
_CALLED: Final = [api for api in APIS.values() if api.name not in _ENDS_ITS_CONNECTION]
_WEIGHTS: Final = [_CALLED_MORE_OFTEN.get(api.name, 1) for api in _CALLED]


class Call(NamedTuple):
    """What is asked, but for its values."""

    api: Api
    version: int


EVERY_CALL: Final = [
    Call(api, version)
    for api in _CALLED
    for version in versions_of(api.request)
    if api.speaks(version)
]


class Answered(NamedTuple):
    """What was asked, and the answer, as it came and as it is to be understood."""

    request: Message
    version: int
    frame: bytes
    answer: Message


def draw(random: Random) -> list[Call]:
    """For each connection one, of the APIs with much to go wrong more."""
    apis = random.choices(_CALLED, _WEIGHTS, k=CONNECTIONS)
    return [random.choice([call for call in EVERY_CALL if call.api is api]) for api in apis]


def ask(
    peers: Sequence[Peer], calls: Sequence[Call], values: PlausibleValues
) -> Iterator[Answered]:
    """A request over each connection, and then their answers: some wait for each other."""
    asked = []
    for peer, (api, version) in zip(peers, calls, strict=True):
        request = values.request(api.request, version)
        peer.send(encode_request(request, version, 7, "plausible"))
        asked.append((peer, api, version, request))
    for peer, api, version, request in asked:
        try:
            frame = peer.read_frame()
        except EOFError:
            pytest.fail(f"the broker hung up on version {version} of {request}")
        correlation_id, answer = decode_response(api, version, frame)
        assert correlation_id == 7
        values.learn(request, answer)
        yield Answered(request, version, frame, answer)


@contextmanager
def open_peers(bootstrap: str) -> Iterator[Sequence[Peer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Peer(bootstrap)) for _ in range(CONNECTIONS)]


def find_coordinators(bootstrap: str) -> None:
    """Of a group and of a transaction, as clients do: that makes the coordinators' topics."""
    with Peer(bootstrap) as peer:
        for kind in (0, 1):
            asked = FindCoordinatorRequest(key="somebody", key_type=kind)
            answer = peer.ask(asked, 2, FindCoordinatorResponse)
            assert answer.error_code == ErrorCode.NONE
