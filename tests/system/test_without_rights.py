"""Who may do nothing changes nothing, and is told of nothing: requests of all APIs that are nearly
right, from somebody whom no ACL allows anything.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.asking import (
    CONNECTIONS,
    EVERY_CALL,
    SETTINGS,
    ask,
    find_coordinators,
    open_peers,
)
from tests.system.attacks import Peer, batch
from tests.system.plausible import TOPICS, PlausibleValues
from tidemark.protocol.errors import ErrorCode
from tidemark.testing.process import BrokerProcess, open_broker_process

HIDDEN = "hidden-from-all"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:somebody-else",
}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[BrokerProcess]:
    """With records in some topics, and an authorizer since."""
    data_dir = tmp_path / "data"
    with open_broker_process(data_dir, settings=SETTINGS) as open_to_all:
        find_coordinators(open_to_all.bootstrap)
        with Peer(open_to_all.bootstrap) as peer:
            for topic in (*TOPICS, HIDDEN):
                peer.create_topic(topic)
                assert peer.produce(topic, batch(b"a", b"b", b"c")) is ErrorCode.NONE
    with open_broker_process(data_dir, settings={**SETTINGS, **AUTHORIZER}) as process:
        yield process


def partitions(broker: BrokerProcess) -> dict[str, list[bytes]]:
    """The logs of all partitions but that of the metadata, in which brokers say that they live."""
    return {
        folder.name: [log.read_bytes() for log in sorted(folder.glob("*.log"))]
        for folder in broker.data_dir.glob("*-*")
        if folder.name != "__cluster-0"
    }


def test_who_may_do_nothing_changes_nothing_and_is_told_of_nothing(guarded: BrokerProcess) -> None:
    before, values = partitions(guarded), PlausibleValues(3)
    with open_peers(guarded.bootstrap) as peers:
        for call in EVERY_CALL * 2:
            for each in ask(peers, [call] * CONNECTIONS, values):
                assert HIDDEN.encode() not in each.frame, each
    guarded.kill()
    assert partitions(guarded) == before
