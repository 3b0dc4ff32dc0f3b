"""Who lives: by what is heard, by its connection, by its incarnation."""

from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.protocol.types import NodeId

A, B, C = NodeId(1), NodeId(2), NodeId(3)


def table() -> PeerTable:
    peers = PeerTable(A, failure_timeout_seconds=1.0)
    peers.set_nodes([A, B, C])
    return peers


def test_nobody_lives_before_it_is_heard_but_oneself() -> None:
    peers = table()
    assert [node for node in (A, B, C) if peers.is_alive(node)] == [A]


def meet(peers: PeerTable, now: float) -> None:
    peers.heard(B, now)
    peers.confirmed(B, now, now)


def test_a_peer_lives_once_it_was_heard_and_hears() -> None:
    peers = table()
    assert not peers.heard(B, 5.0)
    assert not peers.is_alive(B)
    assert peers.confirmed(B, 4.9, 5.1)
    assert peers.is_alive(B)
    assert not peers.heard(B, 5.2)  # it was already


def test_a_peer_that_was_silent_for_the_timeout_is_dead() -> None:
    peers = table()
    meet(peers, 5.0)
    peers.confirmed(B, 5.5, 5.6)
    assert peers.next_deadline() == 6.0
    assert peers.silent(5.9) == []
    assert peers.silent(6.0) == [B]


def test_where_confirmations_are_late_every_time_the_timeout_is_longer_for_a_while() -> None:
    peers = table()
    peers.heard(B, 5.0)
    assert peers.confirmed(B, 3.5, 5.0)  # a second and a half ago: longer than the timeout
    peers.heard(B, 9.4)
    assert peers.silent(9.4) == []
    assert peers.silent(9.5) == [B]
    for n in range(20):
        peers.heard(B, 7 + n / 10)
        peers.confirmed(B, 7 + n / 10, 7 + n / 10)
    assert peers.next_deadline() == 9.9


def test_time_that_this_process_did_not_get_does_not_count() -> None:
    peers = table()
    meet(peers, 5.0)
    peers.forgive(3.0, 8.2)
    assert peers.silent(8.9) == []
    assert peers.silent(9.0) == [B]
    peers.forgive(60.0, 9.0)
    assert peers.silent(10.0) == [B], "nobody was heard in the future"


def test_an_answer_that_had_to_be_durable_comes_a_round_later() -> None:
    peers = table()
    meet(peers, 5.0)
    peers.confirmed(B, 5.1, 5.4)  # it takes 0.3 s
    peers.confirmed(B, 5.6, 5.7)
    assert peers.has_read(B, 5.5)
    assert not peers.has_answered(B, 5.5)
    assert peers.has_answered(B, 5.3)
    assert peers.has_answered(A, 9.0)


def test_who_confirms_the_same_again_and_again_is_not_late_but_deaf() -> None:
    peers = table()
    meet(peers, 5.0)
    for now in (5.3, 5.6, 5.9, 6.2):
        peers.heard(B, now)
        peers.confirmed(B, 5.0, now)
    assert peers.silent(6.2) == [B]


def test_no_lateness_makes_the_timeout_endless() -> None:
    peers = table()
    peers.confirmed(B, 1.0, 100.0)
    meet(peers, 100.0)
    assert peers.silent(107.9) == []
    assert peers.silent(108.0) == [B]


def test_a_peer_has_read_what_was_sent_before_a_heartbeat_that_it_confirms() -> None:
    peers = table()
    meet(peers, 5.0)
    peers.confirmed(B, 5.5, 5.6)
    peers.excuse(9.0, 0.2)
    assert peers.has_read(B, 5.4)
    assert not peers.has_read(B, 5.5)
    assert peers.has_read(A, 9.0)


def test_a_peer_that_hears_nothing_is_dead_however_much_it_speaks() -> None:
    peers = table()
    meet(peers, 5.0)
    for now in (5.3, 5.6, 5.9, 6.2):
        peers.heard(B, now)
    assert peers.silent(6.2) == [B]
    peers.down(B, 6.2)
    assert not peers.heard(B, 6.3)


def test_a_peer_whose_connection_is_lost_is_dead_at_once() -> None:
    peers = table()
    meet(peers, 5.0)
    assert peers.down(B, 5.1)
    assert not peers.is_alive(B)
    assert not peers.down(B, 5.1)


def test_what_a_peer_heard_before_it_was_lost_does_not_bring_it_back() -> None:
    peers = table()
    meet(peers, 5.0)
    peers.down(B, 5.1)
    peers.heard(B, 5.2)
    assert not peers.confirmed(B, 5.05, 5.2)
    assert peers.confirmed(B, 5.15, 5.2)


def test_a_newer_incarnation_is_another_process() -> None:
    peers = table()
    assert not peers.note_incarnation(B, 3)  # the first that is heard of replaces nothing
    assert not peers.note_incarnation(B, 3)
    assert peers.note_incarnation(B, 4)
    assert peers.is_outdated(B, 3)
    assert not peers.is_outdated(B, 4)


def test_who_stood_still_itself_does_not_blame_the_others() -> None:
    peers = table()
    meet(peers, 5.0)
    peers.excuse(9.0, 0.2)
    assert peers.silent(9.1) == []
    assert peers.silent(9.3) == [B]


def test_a_broker_that_left_the_cluster_is_forgotten() -> None:
    peers = table()
    meet(peers, 5.0)
    assert peers.set_nodes([A, C]) == [B]
    assert not peers.is_alive(B)
    assert peers.nodes == [C]
