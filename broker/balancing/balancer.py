"""The loop: look at the cluster, plan, wish, look again when something has come of it.

It runs on every broker and acts on the one that leads the cluster's metadata. Wishes are in the
metadata, so whoever leads them next goes on where this one was. It begins a few moves at a time;
what it has begun counts as done when it plans the next ones.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final
from uuid import UUID

import trio

from tidemark.broker.balancing import proposing
from tidemark.broker.balancing.beginning import Beginning
from tidemark.broker.balancing.departures import Departures, InThread
from tidemark.broker.balancing.gathering import Gathering
from tidemark.broker.balancing.history import History
from tidemark.broker.balancing.metadata_lead import HandOver, next_metadata_leader
from tidemark.broker.balancing.progress import Progress, work_left
from tidemark.broker.balancing.settled import Settled
from tidemark.broker.metrics.balance_counts import BalanceMetrics
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.balancing.agenda import Agenda
from tidemark.partitions.balancing.leaders import Plan, plan
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import BrokerState, Group, Snapshot
from tidemark.partitions.state_machines.cluster_commands import (
    EndMoves,
    FinishReassignments,
    SetBrokerState,
)
from tidemark.partitions.state_machines.cluster_machine import Outcome
from tidemark.protocol.errors import RequestError
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.node import Clock

_GAP_SECONDS: Final = 0.1
"""Between two looks at least, however much happens."""
_BUSY_SECONDS: Final = 1.0
"""While something is under way it is looked again after so long, if nothing has happened."""
_SETTLED_TIMES: Final = 2
"""By how much looks are rarer after a plan without moves."""
_BY_HAND_SECONDS: Final = 120.0


logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _ByHand:
    """Somebody has asked for it: the balancer goes on until all is even, even if it is off."""

    rules: Settings
    until: float


class Balancer:
    """Made by `open_balancing`."""

    def __init__(
        self,
        cluster: proposing.Cluster,
        gathering: Gathering,
        history: History,
        rules: Settings,
        *,
        is_enabled: bool,
        interval_seconds: float,
        clock: Clock,
        metrics: BalanceMetrics,
        hand_over_metadata: HandOver,
        rng: Random,
        in_thread: InThread = run_in_thread,
    ) -> None:
        self.rules = rules
        self.is_enabled = is_enabled
        self.progress = Progress()
        self._cluster = cluster
        self._gathering = gathering
        self._history = history
        self._interval_seconds = interval_seconds
        self._metrics = metrics
        self._hand_over_metadata = hand_over_metadata
        self._rng = rng
        self._in_thread = in_thread
        self._agenda = Agenda()
        self._beginning = Beginning(cluster, history, clock, metrics)
        self._departures = Departures(cluster, rules, rng, in_thread)
        self._settled: Settled | None = None
        self._at_rest: Sequence[Group] | None = None
        self._by_hand: _ByHand | None = None
        self._is_woken = trio.Event()
        self._is_busy = False

    # What others tell

    def applied(self, outcome: Outcome) -> None:
        """A command of the metadata was applied."""
        match outcome.command:
            case EndMoves(outcomes=ended):
                for each in ended:
                    self._beginning.ended(each)
                    self._gathering.moved(each.id)
                self._is_woken.set()
            case SetBrokerState() | FinishReassignments():
                self._is_woken.set()

    def wake(self) -> None:
        """Look soon: brokers take another part."""
        self._is_woken.set()

    def ask(self, *, at_once: bool) -> None:
        """Even out now. `at_once`: partitions that have just moved are not let be."""
        rules = self.rules.without_waiting() if at_once else self.rules
        self._by_hand = _ByHand(rules, trio.current_time() + _BY_HAND_SECONDS)
        self._agenda.clear()
        self._is_woken.set()

    # The loop

    async def run(self) -> None:
        while True:
            with trio.move_on_after(_BUSY_SECONDS if self._is_busy else self._pause_seconds):
                await self._is_woken.wait()
            self._is_woken = trio.Event()
            self._is_busy = False
            self._history.forget_gone(self._is_there)
            if self._cluster.leads:
                await self._look()
            else:
                self._rest()
            await trio.sleep(_GAP_SECONDS)

    def _is_there(self, topic_id: UUID) -> bool:
        return self._cluster.state.topic_by_id(topic_id) is not None

    @property
    def _pause_seconds(self) -> float:
        """Where nothing was to be done, nothing is to be done soon."""
        return (
            self._interval_seconds
            if self._settled is None
            else _SETTLED_TIMES * self._interval_seconds
        )

    def _rest(self) -> None:
        self._history.stop_watching()
        self._gathering.stop()
        self._metrics.clear()
        self._agenda.clear()
        self._beginning.clear()
        self._departures.clear()
        self._settled = None
        self.progress.keep_only(())
        self._by_hand = None

    async def _look(self) -> None:
        try:
            await self._act_on(await self._gathering.gather())
        except RequestError as error:
            # Mostly: another broker leads the metadata now.
            logger.debug("balancing: %s", error)
        except Exception:
            # A plan that cannot be made must not end a broker that serves.
            logger.exception("balancing has failed, and is tried again")

    async def _act_on(self, snapshot: Snapshot) -> None:
        self._note_progress(snapshot)
        rules, by_hand = self._rules_now(), self._by_hand
        if not self._agenda or self._agenda.is_outdated(snapshot):
            await self._plan(snapshot, rules)
        self._metrics.show(snapshot)
        if moves := self._agenda.take(snapshot):
            self._is_busy = await self._beginning.begin(moves)
        self._is_busy |= bool(self._agenda) or self._moves(snapshot)
        if not self._is_busy:
            # Who has asked since has not been served yet.
            if self._by_hand is by_hand:
                self._by_hand = None
            self._give_up_metadata(snapshot)
        self._is_busy |= await self._departures.go_on(snapshot)

    def _moves(self, snapshot: Snapshot) -> bool:
        """Whether a leader is on its way. Not looked for again where all is as it was."""
        if self._at_rest is snapshot.groups:
            return False
        moves = any(group.is_moving for group in snapshot.groups)
        self._at_rest = None if moves else snapshot.groups
        return moves

    def _rules_now(self) -> Settings:
        by_hand = self._by_hand
        if by_hand is not None and trio.current_time() > by_hand.until:
            by_hand = self._by_hand = None
        return self.rules if by_hand is None else by_hand.rules

    async def _plan(self, snapshot: Snapshot, rules: Settings) -> None:
        """All the way; drained brokers are emptied first, and that waits for nothing."""
        if self._is_settled(snapshot, rules):
            return
        made = None
        if any(broker.state is not BrokerState.ACTIVE for broker in snapshot.brokers):
            of_drains = rules.for_drains()
            made = await self._planned(snapshot, of_drains, only_empties=True)
            self._agenda.fill(made, snapshot, of_drains)
        if (made is None or not made.moves) and (self.is_enabled or self._by_hand is not None):
            made = await self._planned(snapshot, rules)
            self._agenda.fill(made, snapshot, rules)
        if made is not None:
            self._metrics.planned(made)
            self._settled = None if made.moves else Settled.by(made, snapshot)

    def _is_settled(self, snapshot: Snapshot, rules: Settings) -> bool:
        """Whether the last plan had no moves, and all is as it was: an idle cluster costs nothing.

        Time alone changes that where a group was let be for a while, and is no more.
        """
        return (
            self._settled is not None
            and self._by_hand is None
            and not self._agenda.has_other_roles(snapshot)
            and self._settled.holds(snapshot, rules)
        )

    async def _planned(
        self, snapshot: Snapshot, rules: Settings, *, only_empties: bool = False
    ) -> Plan:
        # On a thread: with thousands of partitions it takes tenths of a second.
        return await self._in_thread(
            partial(plan, snapshot, rules.without_bounds(), self._rng, only_empties=only_empties)
        )

    def _note_progress(self, snapshot: Snapshot) -> None:
        wanted = [each for each in snapshot.brokers if each.state is not BrokerState.ACTIVE]
        for broker in wanted:
            work = work_left(broker.state, broker.node_id, snapshot.groups)
            self.progress.note(broker.node_id, work, snapshot.now_ms)
        self.progress.keep_only([broker.node_id for broker in wanted])

    def _give_up_metadata(self, snapshot: Snapshot) -> None:
        """Last of all, if this broker is to lead nothing: who leads them plans."""
        group = self._gathering.metadata_group()
        target = next_metadata_leader(group, snapshot, self.rules)
        if target is not None:
            logger.info("handing the lead of the metadata over to broker %d", target)
            self._hand_over_metadata(target)
