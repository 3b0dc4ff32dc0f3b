"""Who lives: by what is heard, by its connection, by its incarnation."""

from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.protocol.types import NodeId

A, B, C = NodeId(1), NodeId(2), NodeId(3)


def table() -> PeerTable:
    peers = PeerTable(A, failure_timeout_s=1.0)
    peers.set_nodes([A, B, C])
    return peers


def test_nobody_lives_before_it_is_heard_but_oneself() -> None:
    peers = table()
    assert [node for node in (A, B, C) if peers.is_alive(node)] == [A]


def test_a_peer_lives_until_it_was_silent_for_the_timeout() -> None:
    peers = table()
    assert peers.heard(B, 5.0)
    assert not peers.heard(B, 5.5)
    assert peers.next_deadline() == 6.5
    assert peers.silent(6.4) == []
    assert peers.silent(6.5) == [B]


def test_a_peer_whose_connection_is_lost_is_dead_at_once() -> None:
    peers = table()
    peers.heard(B, 5.0)
    assert peers.down(B)
    assert not peers.is_alive(B)
    assert not peers.down(B)


def test_a_newer_incarnation_is_another_process() -> None:
    peers = table()
    assert not peers.is_replaced(B, 3)  # the first that is heard of replaces nothing
    assert not peers.is_replaced(B, 3)
    assert peers.is_replaced(B, 4)
    assert peers.is_outdated(B, 3)
    assert not peers.is_outdated(B, 4)


def test_who_stood_still_itself_does_not_blame_the_others() -> None:
    peers = table()
    peers.heard(B, 5.0)
    peers.excuse(9.0, 0.2)
    assert peers.silent(9.1) == []
    assert peers.silent(9.3) == [B]


def test_a_broker_that_left_the_cluster_is_forgotten() -> None:
    peers = table()
    peers.heard(B, 5.0)
    assert peers.set_nodes([A, C]) == [B]
    assert not peers.is_alive(B)
    assert peers.nodes == [C]
