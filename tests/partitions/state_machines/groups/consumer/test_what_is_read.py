"""Which topics the members of a consumer group read, and who shares them out."""

from dataclasses import replace

from tests.partitions.state_machines.groups.consumer.clients import (
    Member,
    group_of,
    parts,
    reasons,
    settle,
    topics,
)
from tests.partitions.state_machines.groups.driver import Coordinator
from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.protocol.messages.consumer_group_records import ConsumerGroupMemberMetadataValue


def test_members_get_what_topics_grow_by(groups: Coordinator) -> None:
    member = Member(groups, "a")
    member.beat()
    groups.set_topics(topics(orders=6))
    member.beat()
    assert member.owned == parts("orders", *range(6))
    assert reasons(groups)[-1] == "topics have changed: orders has 6 partitions"


def test_a_topic_that_comes_later_is_read_then(groups: Coordinator) -> None:
    member = Member(groups, "a", reads=("later",))
    member.beat()
    assert member.owned == frozenset()
    groups.set_topics(topics(later=1))
    member.beat()
    assert member.owned == parts("later", 0)
    groups.set_topics(topics())
    member.beat()
    member.beat()
    assert member.owned == frozenset()


def test_topics_that_nobody_reads_cause_no_rebalance(groups: Coordinator) -> None:
    member = Member(groups, "a")
    member.beat()
    groups.set_topics(topics(orders=4, other=9))
    member.beat()
    assert group_of(groups).epoch == 1


def test_topics_are_found_by_their_names_pattern() -> None:
    groups = Coordinator(topics=topics(orders=1, orders_eu=1, clicks=1))
    member = Member(groups, "a", reads=(), pattern="orders.*")
    member.beat()
    assert member.owned == parts("orders", 0) | parts("orders_eu", 0)
    groups.set_topics(topics(orders=1, orders_us=1))
    settle(member)
    assert member.owned == parts("orders", 0) | parts("orders_us", 0)


def test_a_pattern_in_the_log_that_is_not_understood_names_no_topics(groups: Coordinator) -> None:
    member = Member(groups, "a", reads=("clicks",), pattern="orders")
    settle(member)
    for number, (key, value) in enumerate(groups.log):
        if isinstance(value, ConsumerGroupMemberMetadataValue):
            another = replace(value, subscribed_topic_regex="(?i)orders")
            groups.log[number] = LogRecord(key, another)
    groups.restart()
    groups.set_topics(topics(orders=4, clicks=3))
    settle(member)
    assert member.owned == parts("clicks", 0, 1, 2)


def test_what_a_member_reads_may_change(groups: Coordinator) -> None:
    member = Member(groups, "a")
    member.beat()
    waiter = groups.ask(replace(member.request(), topics=frozenset({"clicks"})))
    member.take(waiter)
    settle(member)
    assert member.owned == parts("clicks", 0, 1)


def test_most_members_choose_the_assignor(groups: Coordinator) -> None:
    members = [Member(groups, "a", assignor="range"), Member(groups, "b", assignor="range")]
    settle(*members, Member(groups, "c", assignor="uniform"))
    assert group_of(groups).assignor == "range"


# Commits
