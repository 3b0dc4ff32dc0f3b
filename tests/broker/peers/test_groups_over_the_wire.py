"""Groups agree though everything they say is encoded and decoded on the way."""

import pytest

from tests.partitions.replication.cluster import Cluster
from tidemark.broker.peers.decoding import decode
from tidemark.broker.peers.encoding import encode
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.messages.peer.versions import LAST_VERSION
from tidemark.protocol.peer_frames import decode_peer_header
from tidemark.protocol.types import NodeId

pytestmark = pytest.mark.usefixtures("wire")


def travelled(message: PeerMessage) -> list[PeerMessage]:
    """What the other side makes of the frames."""
    found: list[PeerMessage] = []
    for frame in encode([message], LAST_VERSION):
        data = bytearray()
        for part in frame.parts:
            if isinstance(part, bytes):
                data += part
            else:
                assert isinstance(part, LogSlice)
                data += part.read()
        assert len(data) == frame.size_bytes
        found += decode(*decode_peer_header(memoryview(data)[4:]))
    return found


@pytest.mark.parametrize("flush_commit", [True, False])
def test_a_group_elects_commits_and_goes_on_without_its_leader(
    flush_commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: set[str] = set()
    receive = ReplicationNode.receive

    def receive_travelled(
        node: ReplicationNode, source: NodeId, message: PeerMessage, now: float
    ) -> None:
        for each in travelled(message):
            kinds.add(type(getattr(each, "message", each)).__name__)
            receive(node, source, each, now)

    monkeypatch.setattr(ReplicationNode, "receive", receive_travelled)
    cluster = Cluster(3)
    cluster.open([1, 2, 3], preference=[2, 1, 3], flush_commit=flush_commit)
    cluster.run(1)
    cluster[2].append("a", "b" * 200_000)
    cluster.run(0.3)
    cluster.kill(2)
    cluster.run(0.5)
    cluster.leader().append("c")
    cluster.run(0.3)
    wanted = ["a", "b" * 200_000, "c"]
    assert [each.committed_values() for each in cluster.brokers.values()] == [wanted] * 2
    assert kinds >= {
        "Heartbeat",
        "VoteRequest",
        "VoteResponse",
        "AppendRequest",
        "AppendResponse",
    }
