"""Trap G14 at large: clients that do all they should are never lost, whatever the order of things.

Others lost members here to races between joins, syncs and heartbeats of one rebalance.
"""

from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.state_machines.groups.driver import (
    REBALANCE_MS,
    SESSION_MS,
    Coordinator,
    Waiter,
)
from tidemark.partitions.state_machines.groups.requests import (
    GroupState,
    JoinAnswer,
    SyncAnswer,
)
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.errors import ErrorCode

CLIENTS = 4


class Client:
    """A consumer as the clients' libraries write it: join, sync, then heartbeats."""

    def __init__(self, number: int, groups: Coordinator) -> None:
        self.number = number
        self.groups = groups
        self.member_id = ""
        self.generation = 0
        self.leads = False
        self.waiter: Waiter | None = None
        self.is_in = False
        self.wants_to_join = True

    def act(self) -> None:
        """Take the next answer, or make the next request."""
        if self.waiter is not None:
            self.take_answer(self.waiter)
        elif self.wants_to_join:
            self.is_in = False
            self.waiter = self.groups.join(
                self.member_id, name=f"member {self.number}", requires_member_id=True
            )
        elif not self.is_in:
            parts = dict.fromkeys(self.groups.members, b"part") if self.leads else {}
            self.waiter = self.groups.sync(self.member_id, self.generation, parts)
        else:
            self.take_error(self.groups.heartbeat(self.member_id, self.generation))

    def take_answer(self, waiter: Waiter) -> None:
        if self.groups.waits(waiter):
            return
        self.waiter = None
        answer = self.groups.answers[waiter]
        match answer:
            case JoinAnswer(error=ErrorCode.NONE):
                self.wants_to_join = False
                self.generation, self.leads = answer.generation, bool(answer.members)
            case JoinAnswer(error=ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = answer.member_id
            case SyncAnswer(error=ErrorCode.NONE):
                self.is_in = True
            case _:
                self.take_error(answer.error)

    def take_error(self, error: ErrorCode) -> None:
        assert error is not ErrorCode.UNKNOWN_MEMBER_ID, "a member was lost"
        if error is not ErrorCode.NONE:
            self.wants_to_join = True


@given(
    delay_ms=st.sampled_from([0, 50]),
    turns=st.lists(st.integers(-1, CLIENTS - 1), max_size=120),
)
def test_clients_that_do_all_they_should_meet_in_one_generation(
    delay_ms: int, turns: list[int]
) -> None:
    groups = Coordinator(GroupSettings(initial_rebalance_delay_ms=delay_ms), holds_writes=True)
    clients = [Client(number, groups) for number in range(CLIENTS)]
    for turn in turns:
        if turn >= 0:
            clients[turn].act()
        elif groups.held:
            groups.store_one()
        groups.advance(10)
    for _ in range(40):
        for client in clients:
            client.act()
        groups.store_all()
        groups.advance(50)
    assert groups.state() is GroupState.STABLE
    assert {client.generation for client in clients} == {clients[0].generation}
    assert all(client.is_in for client in clients)
    assert len(groups.members) == CLIENTS


def test_a_leader_that_leaves_is_replaced() -> None:
    groups = Coordinator()
    generation = groups.form("a", "b", "c")
    groups.leave("a")
    answers = [groups.joined(waiter) for waiter in [groups.join(name) for name in ("b", "c")]]
    assert {answer.generation for answer in answers} == {generation + 1}
    assert [bool(answer.members) for answer in answers] == [True, False]


def test_a_full_group_turns_newcomers_away_and_keeps_its_members() -> None:
    groups = Coordinator(GroupSettings(initial_rebalance_delay_ms=0, group_members_max=2))
    groups.form("a", "b")
    answer = groups.joined(groups.join(name="c"))
    assert answer.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.state() is GroupState.STABLE
    assert groups.members == ["a", "b"]


def test_members_elect_the_protocol_that_most_like_best_and_all_speak() -> None:
    groups = Coordinator(GroupSettings(initial_rebalance_delay_ms=50))
    preferences = (("x", "range", "sticky"), ("range", "sticky"), ("sticky", "range"))
    waiters = [
        groups.join(name=f"m{number}", protocols=tuple((name, b"") for name in names))
        for number, names in enumerate(preferences)
    ]
    groups.advance(100)
    assert {groups.joined(waiter).protocol for waiter in waiters} == {"range"}


def test_a_member_that_speaks_none_of_the_groups_protocols_is_refused() -> None:
    groups = Coordinator()
    groups.form("a")
    wrong = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.joined(groups.join(protocols=(("other", b""),))).error is wrong
    assert groups.joined(groups.join(protocol_type="connect")).error is wrong
    assert groups.joined(groups.join(group_id="new", protocols=())).error is wrong


def test_while_only_static_members_are_missing_they_are_waited_for_by_their_session() -> None:
    groups = Coordinator()
    groups.form("a", "b", instance_ids=True)
    groups.advance(REBALANCE_MS)
    assert groups.state() is GroupState.EMPTY, "both sessions ended"
    generation = groups.form("a", "b", instance_ids=True)
    waiter = groups.join("a", instance_id="a", protocols=(("range", b"changed"),))
    groups.heartbeat("b", generation, instance_id="b")
    groups.advance(SESSION_MS)
    assert groups.joined(waiter).generation == generation + 1
    assert groups.members == ["a"]


def test_a_join_phase_without_anybody_does_not_end_all_the_time() -> None:
    """Of static members that are missing, whose rebalance timeout is none at all."""
    groups = Coordinator()
    groups.join(name="a", instance_id="a", rebalance_ms=0)
    groups.join(name="b", rebalance_ms=0)
    groups.leave("b")
    groups.take(groups.shard.tick(groups.now))
    assert groups.members == ["a"]
    assert groups.state() is GroupState.PREPARING_REBALANCE
    assert groups.shard.next_deadline_ms is not None
    assert groups.shard.next_deadline_ms > groups.ticks_ms
    groups.advance(SESSION_MS)
    assert groups.state() is GroupState.EMPTY


def test_a_static_leader_that_is_missing_leaves_the_lead_to_one_that_joined() -> None:
    groups = Coordinator()
    generation = groups.form("a", "b", instance_ids=True)
    waiter = groups.join("b", instance_id="b", rebalance_ms=5_000, protocols=(("range", b"new"),))
    for _ in range(REBALANCE_MS // 5_000):
        groups.heartbeat("a", generation, instance_id="a")
        groups.advance(5_000)
    answer = groups.joined(waiter)
    assert (answer.generation, answer.leader) == (generation + 1, "b")
    assert [member.member_id for member in answer.members] == ["a", "b"]
