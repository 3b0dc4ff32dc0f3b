"""Groups whose members are restarted by either protocol (KIP-848's migration), under faults."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.simulator.rolling import ROLLING
from tidemark.partitions.state_machines.groups import migration
from tidemark.partitions.state_machines.groups.consumer import classic_members, embedded
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.types import TopicPartition
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.drawing import draw_knobs
from tidemark.testing.simulator.knobs import Layer
from tidemark.testing.simulator.run import simulate
from tidemark.testing.simulator.transactions.holdings import Holdings
from tidemark.testing.simulator.transactions.migrant import SETTLE_SECONDS_MAX, Rollout
from tidemark.testing.simulator.transactions.play import Play


def test_a_group_goes_up_and_back_while_its_members_read_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = Counter[str]()
    up, down = migration.give_way, migration.downgrade_stored

    def gives_way(*args: Any) -> None:  # Any: as `give_way`
        done["up"] += 1
        up(*args)

    def is_stored(*args: Any) -> Any:  # Any: as `downgrade_stored`
        classic = down(*args)
        done["down"] += classic is not None
        return classic

    monkeypatch.setattr(migration, "give_way", gives_way)
    monkeypatch.setattr(migration, "downgrade_stored", is_stored)
    verdict = simulate(8, knobs=ROLLING)
    assert verdict.passed, verdict.what
    assert min(done["up"], done["down"]) > 0
    assert verdict.coverage.counts["offsets committed"] > 10


def test_cooperative_members_get_on() -> None:
    verdict = simulate(1, knobs=replace(ROLLING, cooperative=True))
    assert verdict.passed, verdict.what
    assert verdict.coverage.counts["offsets committed"] > 10


def _go_up_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many processes as there are members speak the consumer protocol, and none after them: as
    a rollout that is taken back for good. In most runs all members are classic ones in the end."""
    begun = Counter[Rollout]()

    def is_one_of_the_first(self: Rollout) -> bool:
        self.is_hastened = False
        begun[self] += 1
        return begun[self] <= len(self.members)

    monkeypatch.setattr(Rollout, "begin_next", is_one_of_the_first)


def test_a_group_that_does_not_come_to_rest_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    _go_up_and_back(monkeypatch)
    begin_downgrade = migration.begin_downgrade

    def never(*_args: Any) -> None:  # Any: as `begin_downgrade`
        pass

    monkeypatch.setattr(migration, "begin_downgrade", never)
    for seed in range(12):  # three of four notice
        found = simulate(seed, knobs=ROLLING)
        if not found.passed:
            break
    assert found.invariant == "a group settles"
    assert "is consumer, and its members make it classic" in found.what
    monkeypatch.setattr(migration, "begin_downgrade", begin_downgrade)
    assert simulate(seed, knobs=ROLLING).passed


def test_a_group_has_its_time_to_come_to_rest_from_when_it_has_a_coordinator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_args: Any) -> None:  # Any: as `begin_downgrade`
        pass

    _go_up_and_back(monkeypatch)
    monkeypatch.setattr(migration, "begin_downgrade", never)
    runs = (simulate(seed, knobs=ROLLING) for seed in range(12))
    found = next(run for run in runs if run.invariant == "a group settles")
    since = found.at - 1

    def has_one_since(play: Play, _group_id: str) -> bool:
        return play._world.queue.now > since

    monkeypatch.setattr(Play, "has_coordinator", has_one_since)
    later = simulate(found.seed, knobs=ROLLING)
    assert later.invariant == "a group settles"
    assert later.at == pytest.approx(since + SETTLE_SECONDS_MAX, abs=0.5)


def test_classic_members_of_whose_parts_the_new_group_knows_nothing_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded, "assigned", lambda *_: frozenset())
    found = {simulate(seed, knobs=ROLLING).invariant for seed in range(6)}
    assert "one member reads a partition" in found


def test_what_a_member_is_letting_go_of_and_another_has_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def holds_nothing(*_args: Any) -> None:  # Any: as `_hold_what_it_lets_go`
        pass

    # A seed that is drawn for it.
    assert simulate(97, layer=Layer.TRANSACTIONS).passed
    monkeypatch.setattr(migration, "_hold_what_it_lets_go", holds_nothing)
    found = simulate(97, layer=Layer.TRANSACTIONS)
    assert found.knobs.aim == "letting go"
    assert found.invariant == "one member reads a partition"


def test_a_member_that_is_told_too_early_that_it_is_out_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at_once(group: ConsumerGroup, settings: GroupSettings) -> bool:
        recording = group.recording
        is_busy = recording.is_touched or recording.is_under_way or group.is_dead
        are_classic = [member.is_classic for member in group.members.values()]
        return settings.may_downgrade and not is_busy and bool(are_classic) and all(are_classic)

    monkeypatch.setattr(migration, "_can_downgrade", at_once)
    found = {simulate(seed, knobs=ROLLING).invariant for seed in range(4)}
    assert "who is heard stays a member" in found


def test_a_member_may_hear_late_what_it_was_to_give_up_long_ago() -> None:
    """The answer that said so first was lost; that it is out then is no mistake."""
    assert simulate(2021, layer=Layer.TRANSACTIONS).passed


def test_one_that_joins_no_more_and_stays_a_member_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def waits_for_ever(*_args: Any) -> None:  # Any: as `expect_round`
        pass

    monkeypatch.setattr(ConsumerGroup, "expect_round", waits_for_ever)
    found = {simulate(seed, knobs=ROLLING).invariant for seed in range(6)}
    assert "who does not join in time is out" in found


def test_two_that_are_sure_to_read_a_partition_are_one_too_many() -> None:
    read = [TopicPartition("inputs", 0)]
    for is_judged, second_at in ((True, 2.0), (False, 1.2)):
        holdings = Holdings({}, _has_none, is_judged=is_judged)
        holdings.now("g", "one", read, asked=1.0, now=1.0)
        holdings.now("h", "two", read, asked=1.1, now=1.1)
        holdings.now("g", "two", read, asked=second_at, now=second_at)
    holdings = Holdings({}, _has_none, is_judged=True)
    holdings.now("g", "one", read, asked=1.0, now=1.0)
    holdings.now("g", "two", read, asked=0.4, now=1.2)  # long after it was heard
    with pytest.raises(Violation, match="one member reads a partition"):
        holdings.now("g", "two", read, asked=1.2, now=1.2)


def _has_none(_group: str) -> bool:
    """No former coordinator."""
    return False


def test_a_former_coordinator_may_know_nothing_of_a_member() -> None:
    Holdings({}, lambda _: True, is_judged=True).check_out("g", "one", granted=1.0, now=1.2)
    with pytest.raises(Violation, match="who is heard stays a member"):
        Holdings({}, _has_none, is_judged=True).check_out("g", "one", granted=1.0, now=1.2)


def test_some_runs_are_of_members_that_change_their_protocol() -> None:
    drawn = [draw_knobs(seed, seconds=1, layer=Layer.TRANSACTIONS) for seed in range(40)]
    migrating = [knobs for knobs in drawn if knobs.migrating]
    assert 4 < len(migrating) < 20
    assert {knobs.aim for knobs in migrating} >= {"migration", "rolling restarts"}
    assert {knobs.cooperative for knobs in migrating} == {False, True}


def test_members_let_go_of_something_when_their_group_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = Counter[str]()
    hold = migration._hold_what_it_lets_go

    def holds(converted: ConsumerGroup, member: Any, *args: Any) -> None:  # Any: as it has
        hold(converted, member, *args)
        held["revoking"] += bool(converted.members[member.id].revoking)

    monkeypatch.setattr(migration, "_hold_what_it_lets_go", holds)
    knobs = replace(ROLLING, seconds=12.0, cooperative=True, is_hasty=True, pauses=0.0)
    for seed in range(4):
        verdict = simulate(seed, knobs=knobs)
        assert verdict.passed, verdict.what
    assert held["revoking"] > 0


def test_members_that_were_taken_out_claim_what_they_had(monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = Counter[str]()
    check = classic_members._check_joining

    def checks(group: Any, request: Any, member: Any, owned: Any, settings: Any) -> Any:
        claimed["though out"] += member is None and bool(owned)
        return check(group, request, member, owned, settings)

    monkeypatch.setattr(classic_members, "_check_joining", checks)
    knobs = draw_knobs(41, seconds=20, layer=Layer.TRANSACTIONS)
    assert knobs.aim == "slow to join"
    verdict = simulate(41, knobs=knobs)
    assert verdict.passed, verdict.what
    assert claimed["though out"] > 0
