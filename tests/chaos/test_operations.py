"""What an operator asks for is a matter of the seed, and what came of it is counted by its kind."""

from collections import Counter
from itertools import islice
from random import Random

import pytest
import trio

from tests.chaos.operating import Tally, lines_of, outcome_of
from tests.chaos.operations import DONE, OPERATIONS, Place, change_replica_count, orders
from tidemark.client import ErrorCode, RequestError, TopicPartition, open_client
from tidemark.testing import open_cluster


def test_the_same_seed_has_the_same_orders() -> None:
    assert list(islice(orders(7, OPERATIONS), 50)) == list(islice(orders(7, OPERATIONS), 50))
    assert list(islice(orders(7, OPERATIONS), 50)) != list(islice(orders(8, OPERATIONS), 50))


def test_no_kind_is_left_out_of_the_first_orders() -> None:
    first = [order.kind for order in islice(orders(1, OPERATIONS), len(OPERATIONS))]
    assert sorted(first) == sorted(OPERATIONS)


def test_later_every_kind_comes_again_and_never_at_once() -> None:
    later = list(islice(orders(1, OPERATIONS), len(OPERATIONS), 200))
    assert {order.kind for order in later} == set(OPERATIONS)
    assert all(order.pause_seconds > 0 for order in later)
    assert len({order.seed for order in later}) > len(OPERATIONS)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RequestError(ErrorCode.POLICY_VIOLATION, "no"), "refused, POLICY_VIOLATION"),
        (RequestError(ErrorCode.REQUEST_TIMED_OUT), "timed out"),
        (trio.TooSlowError(), "timed out"),
        (TimeoutError(), "timed out"),
        (ConnectionResetError(), "no answer"),
    ],
)
def test_what_came_of_it_is_said_so_that_it_can_be_counted(
    error: RequestError | OSError | trio.TooSlowError, said: str
) -> None:
    assert outcome_of(error) == said


def test_the_report_says_how_often_and_what_came_of_it() -> None:
    tally = Tally(times=3, beside_faults=2, outcomes=Counter({"done": 2, "timed out": 1}))
    assert lines_of({"move a leader": tally}) == [
        "move a leader: 3 times, 2 beside a fault: done 2, timed out 1"
    ]


def test_only_what_has_room_to_move_is_moved() -> None:
    place = Place(
        [1, 2, 3], lambda: ["synced", "moved"], lambda: ["moved"], lambda _: 2, partitions=4
    )
    assert {place.any_movable(Random(n)).topic for n in range(20)} == {"moved"}
    assert {place.any_partition(Random(n)).topic for n in range(20)} == {"synced", "moved"}


async def test_a_topic_has_as_many_replicas_as_before_when_their_number_was_changed() -> None:
    """A round counts on a majority of three where one broker is away."""
    at = TopicPartition("synced", 0)
    async with open_cluster(brokers=4) as cluster, open_client(cluster.bootstrap) as client:
        await client.admin.create_topic(at.topic, assignments=[[1, 2, 3]])
        topics = [at.topic]
        place = Place(cluster.nodes, lambda: topics, lambda: topics, lambda _: 3, partitions=1)
        with trio.fail_after(30):
            assert await change_replica_count(client.admin, place, Random(1)) == DONE
            described = (await client.admin.describe_replicas([at]))[at]
    assert len(described.replicas) == 3
