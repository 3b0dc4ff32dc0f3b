"""What a run is held to at its end: a good run meets each demand, and a planted bug misses it."""

from typing import Any

import pytest

from tidemark.partitions.raft import voting
from tidemark.partitions.raft.group import Group
from tidemark.protocol.types import Epoch, NodeId
from tidemark.testing.simulator import liveness
from tidemark.testing.simulator.consumer import Consumer
from tidemark.testing.simulator.convergence import wait_converged
from tidemark.testing.simulator.healing import heal
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.network import Network
from tidemark.testing.simulator.run import simulate
from tidemark.testing.simulator.world import World

KNOBS = Knobs(seconds=1.5, groups=1, producers=1, fault_interval=0)


def broken(seed: int = 3) -> str | None:
    return simulate(seed, knobs=KNOBS).invariant


def test_a_run_without_faults_breaks_nothing() -> None:
    assert broken() is None


def test_a_core_that_never_gets_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Healing the network cuts it for good."""

    def cut_all(self: Network) -> None:
        for source in (1, 2, 3):
            for target in (1, 2, 3):
                self.cut(source, target)

    monkeypatch.setattr(Network, "calm", cut_all)
    assert broken() == "a healed core does its work"


def test_an_election_while_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once everything is as it should be, the leader dies."""

    def kill_leader(world: World, core: list[NodeId]) -> None:
        wait_converged(world, core)
        leader = world.leader(world.groups[0])
        assert leader is not None
        leader.stop(power=False)

    monkeypatch.setattr(liveness, "wait_converged", kill_leader)
    # Where all three are in the core, two are left to elect one of them.
    assert "no election while all is well" in {broken(seed) for seed in range(4)}


def test_a_hand_over_of_which_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Group, "hand_over", lambda self, to: None)
    assert broken() == "a hand-over takes one election"


def test_a_hand_over_that_another_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The successor's votes are refused, for the others hear a leader."""
    monkeypatch.setattr(voting, "_is_bound", lambda group, source, _: group.hears_leader(source))
    assert broken() == "a hand-over takes one election"


def _tell_one_that_hangs(world: World) -> tuple[list[NodeId], list[NodeId]]:
    """It reads that it is to lead when the others have long got on without it."""
    (group,) = world.groups
    leader = world.leader(group)
    assert leader is not None
    heir = next(node for node in world.nodes if node != leader.node_id)
    world.brokers[heir].pause(1e6)
    leader.tell(group.key, lambda core: core.hand_over(heir))
    return [node for node in world.nodes if node != heir], []


def test_one_that_was_told_to_lead_and_hung_stands_once(monkeypatch: pytest.MonkeyPatch) -> None:
    epochs = list[Epoch]()
    rejoin = liveness._rejoin

    def rejoins(world: World, *args: Any) -> None:  # Any: as `_rejoin`
        elections = world.watch.groups[world.groups[0].key].elections
        epochs.append(elections.epoch_max)
        rejoin(world, *args)
        epochs.append(elections.epoch_max)

    monkeypatch.setattr(liveness, "choose_core", _tell_one_that_hangs)
    monkeypatch.setattr(liveness, "_rejoin", rejoins)
    assert broken() is None
    before, after = epochs
    assert after > before


def test_one_that_was_told_to_lead_and_more_elections_than_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def heal_and_tell_another(world: World, core: list[NodeId]) -> None:
        heal(world, core)
        if core == world.nodes:
            at = world.queue.now + 2 * liveness._quiet_seconds(world)
            world.queue.at(at, _tell_another, world)

    monkeypatch.setattr(liveness, "choose_core", _tell_one_that_hangs)
    monkeypatch.setattr(liveness, "heal", heal_and_tell_another)
    assert broken() == "no election while all is well"


def _tell_another(world: World) -> None:
    (group,) = world.groups
    leader = world.leader(group)
    assert leader is not None
    heir = next(node for node in world.nodes if node != leader.node_id)
    leader.tell(group.key, lambda core: core.hand_over(heir))


def test_one_that_hears_late_that_it_is_to_lead_stands_before_all_has_to_be_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When the leader has given it up, and all that was to be done is done."""
    epochs = list[Epoch]()

    def tell_late(world: World) -> tuple[list[NodeId], list[NodeId]]:
        (group,) = world.groups
        leader = world.leader(group)
        assert leader is not None
        heir = next(node for node in world.nodes if node != leader.node_id)
        world.network.clog(leader.node_id, heir, world.queue.now + 3)
        leader.tell(group.key, lambda core: core.hand_over(heir))
        return list(world.nodes), []

    def converges(world: World, core: list[NodeId]) -> None:
        wait_converged(world, core)
        epochs.append(world.watch.groups[world.groups[0].key].elections.epoch_max)

    monkeypatch.setattr(liveness, "choose_core", tell_late)
    monkeypatch.setattr(liveness, "wait_converged", converges)
    assert broken() is None
    before, after = epochs
    assert after > before


def test_a_reader_that_does_not_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Consumer, "is_at_the_end", False)
    assert broken() == "everything can be read"


def test_what_clients_saw_is_judged_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer forgets what it got."""
    take = Consumer._take

    def forget(self: Consumer, *args: object) -> None:
        take(self, *args)  # type: ignore[arg-type]  # handed through
        self._history.polls.clear()

    monkeypatch.setattr(Consumer, "_take", forget)
    assert broken() in ("unseen", "lost-write")
