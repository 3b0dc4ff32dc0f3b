"""Who a broker is, and where, as the cluster has it and as it says."""

from tests.broker.peers.brokers import directory
from tidemark.broker.config import Address
from tidemark.broker.peers.hello import Peer, Sighting
from tidemark.broker.peers.whereabouts import Whereabouts
from tidemark.protocol.types import NodeId

NODE = NodeId(2)
HERE, THERE = Address("here", 1), Address("there", 1)


def known_at(address: Address) -> Whereabouts:
    where = Whereabouts(NODE)
    where.aim(Peer(address, directory(NODE)))
    return where


def test_of_whom_nothing_is_known_anybody_may_be() -> None:
    where = Whereabouts(NODE)
    assert where.known is None
    assert where.addresses == []
    assert not where.is_known_as(Sighting(directory(NODE), 1))


def test_it_is_known_by_the_directory_that_the_cluster_has() -> None:
    where = known_at(HERE)
    assert where.is_known_as(Sighting(directory(NODE), 1))
    assert not where.is_known_as(Sighting(directory(3), 1))


def test_it_is_known_by_the_latest_life_that_was_seen() -> None:
    where = known_at(HERE)
    where.seen = Sighting(directory(NODE), 7)
    assert where.is_known_as(Sighting(directory(NODE), 7))
    assert not where.is_known_as(Sighting(directory(NODE), 6))


def test_where_it_says_that_it_is_is_tried_first() -> None:
    where = known_at(HERE)
    where.said_address = THERE
    assert where.addresses == [THERE, HERE]
    where.said_address = HERE
    assert where.addresses == [HERE]


def test_what_it_said_before_the_cluster_had_it_elsewhere_is_forgotten() -> None:
    where = known_at(HERE)
    where.said_address = HERE
    assert not where.aim(Peer(HERE, directory(NODE)))
    assert where.said_address == HERE
    assert where.aim(Peer(THERE, directory(NODE)))
    assert where.addresses == [THERE]


def test_it_is_another_broker_with_a_directory_that_is_not_the_one_seen() -> None:
    where = known_at(HERE)
    where.seen = Sighting(directory(NODE), 7)
    assert not where.forget_replaced()
    where.aim(Peer(HERE, directory(3)))
    assert where.forget_replaced()
    assert where.known == Sighting(directory(3), 0)
