"""Who takes part in transactions and groups, what they have seen, and what is judged in the end."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Final

from tidemark.partitions.state_machines.groups.requests import Commit as GroupCommit
from tidemark.partitions.state_machines.transactions.requests import End
from tidemark.protocol.types import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Offset,
    ProducerId,
    TopicPartition,
)
from tidemark.testing.checkers.history import History
from tidemark.testing.checkers.transactions import (
    Commit,
    Fetched,
    Scan,
    Transaction,
)
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.rpc import Ask
from tidemark.testing.simulator.transactions.asking import CommitInTransaction
from tidemark.testing.simulator.transactions.casting import make_tasks
from tidemark.testing.simulator.transactions.deletions import Deletions
from tidemark.testing.simulator.transactions.inspecting import Inspection
from tidemark.testing.simulator.transactions.judge import TransactionJudge
from tidemark.testing.simulator.transactions.member import REBALANCE_MS
from tidemark.testing.simulator.transactions.onlookers import ask_offsets
from tidemark.testing.simulator.transactions.places import Places
from tidemark.testing.simulator.transactions.readers import Reader
from tidemark.testing.simulator.transactions.talker import Talker
from tidemark.testing.simulator.transactions.tasks import Task, run

if TYPE_CHECKING:
    from tidemark.broker.groups.coordinator import GroupCoordinator
    from tidemark.testing.simulator.world import World

_JOIN_SECONDS: Final = REBALANCE_MS / 1000 + 1.0
_GIVE_UP_SECONDS: Final = (0.1, 1.0, 3.0)
"""Some are impatient: what they have given up may still be on its way."""
_FIRST_ID: Final = 1000


class Play:
    """Of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.places = Places(world.groups)
        may_lose = [*self.places.table]
        if "trim" in world.knobs.fault_kinds:
            may_lose += self.places.words
        self.judge = TransactionJudge({*map(self.places.key, may_lose)})
        self.transactions: list[Transaction] = []
        self.commits: list[Commit] = []
        """Those that were acknowledged."""
        self.fetched: list[Fetched] = []
        self.scans: list[Scan] = []
        self.granted = Counts[tuple[str, str]]()
        """How often coordinators said yes to a heartbeat, by group and member."""
        self.is_stopped = False
        self._fresh_ids = count(_FIRST_ID)
        self._member_ids = count(1)
        self._rng = stream(world.seed, "play")
        self._running = 0
        self.last_offsets: dict[tuple[str, TopicPartition], Offset] = {}
        """How far each group is in the end."""
        self.committed = History()
        self.committed_reader = self._reader("committed reader", self.committed, READ_COMMITTED)
        self.reader_of_all = self._reader("uncommitted reader", History(), READ_UNCOMMITTED)
        self.deletions = Deletions(self, world.groups)
        self.last_reader = self.committed_reader
        """Who reads all there is in the end."""
        self.inspection = Inspection(world)
        self._tasks = list(make_tasks(self, world, self._rng))

    def start(self) -> None:
        self.inspection.start()
        for task in self._tasks:
            self._world.queue.after(self._rng.random(), self._run, task)
        for reader in (self.committed_reader, self.reader_of_all):
            for partition in reader.cursors:
                run(reader.run(partition))

    def _run(self, function: Callable[[], Task]) -> None:
        """Until it is over, which the end of the run waits for."""

        async def until_over() -> None:
            self._running += 1
            await function()
            self._running -= 1

        run(until_over())

    # Clients

    def _talker(self, name: str) -> Talker:
        return Talker(self._world.session(name))

    def _reader(self, name: str, history: History, isolation: int) -> Reader:
        return Reader(
            self._talker(name),
            self.places,
            [*self.places.words, *self.places.table],
            history,
            isolation=isolation,
            bytes_max=self._world.knobs.fetch_bytes_max,
        )

    # For brokers

    def fresh_producer_id(self) -> ProducerId:
        return ProducerId(next(self._fresh_ids))

    def has_coordinator(self, group_id: str) -> bool:
        """Whether somebody leads its partition, does not hang, and has read back what it holds."""
        return self._coordinator_of(group_id) is not None

    def has_former_coordinator(self, group_id: str) -> bool:
        """Whether somebody leads its partition no more, and has not heard of that."""
        key = self.places.groups_coordinator(group_id)
        running = (broker.process for broker in self._world.brokers.values())
        replicas = (process.node.get(key) for process in running if process is not None)
        return sum(replica is not None and replica.is_leader for replica in replicas) > 1

    def kind_of(self, group_id: str) -> str | None:
        """What its coordinator takes a group for, where there is one, and such a group."""
        coordinator = self._coordinator_of(group_id)
        if coordinator is None:
            return None
        listed = (each for each in coordinator.list_groups() if each.group_id == group_id)
        return next((each.kind for each in listed), None)

    def _coordinator_of(self, group_id: str) -> GroupCoordinator | None:
        groups = {group.key: group for group in self._world.groups}
        broker = self._world.leader(groups[self.places.groups_coordinator(group_id)])
        if broker is None or broker.process is None or broker.process.transactions is None:
            return None
        coordinator = broker.process.transactions.coordinators.groups
        is_away = broker.process.paused_until > self._world.queue.now
        return None if is_away or coordinator.is_loading else coordinator

    def new_member_id(self) -> str:
        return f"member-{next(self._member_ids)}"

    def is_too_late(self, client: str, ask: Ask) -> bool:
        """Whether the protocol has no answer to a request that comes so late.

        An end, or an offset, of a client that does not bump its epoch may act on its next
        transaction, and an offset of a member on what it has committed since: that is why KIP-890
        was made. So these are taken from connections that their clients have not given up.
        """
        match ask.body:
            case End(bumps_epoch=False) | CommitInTransaction(adds=False) | GroupCommit():
                return not self._world.sessions[client].waits_for(ask.request)
            case _:
                return False

    # The end

    def stop(self) -> None:
        """Begin nothing more."""
        self.is_stopped = True

    def why_not(self) -> str:
        """What is not over; empty if all is."""
        if self._running:
            return f"{self._running} clients go on"
        for group in self._world.groups:
            broker = self._world.leader(group)
            if broker is None or broker.process is None or broker.process.transactions is None:
                return f"{group.partition} has no leader"
            coordinators = broker.process.transactions.coordinators
            if coordinators.is_loading:
                return f"{broker.node_id} reads coordinators' partitions back"
            replica = coordinators.replicas[group.key]
            if replica.last_stable_offset != replica.high_watermark:
                opened = replica.member.producers.transactions.opened
                return f"{group.partition} is stable up to {replica.last_stable_offset}: {opened}"
            open_ids = [
                f"{name}: {value.state.title}"
                for name, value in coordinators.transactions.list_ids()
                if value.state.is_prepared or value.partitions
            ]
            if open_ids:
                return f"of {broker.node_id}: {open_ids}"
        return ""

    def begin_last_reads(self) -> None:
        """From the beginning to the end, of all there is."""
        self.inspection.look(from_the_start=True)
        self.inspection.look_at_tables()
        for reader in (self.committed_reader, self.reader_of_all):
            reader.is_stopped = True
        self.last_reader = self._reader("last committed reader", self.committed, READ_COMMITTED)
        for partition in self.last_reader.cursors:
            run(self.last_reader.run(partition, idle_seconds=0.02))
        self._run(self._ask_last)

    async def _ask_last(self) -> None:
        talker = self._talker("last onlooker")
        before = len(self.fetched)
        while not await ask_offsets(self, talker):
            await talker.sleep(0.1)
        self.last_offsets = {
            (told.group, told.partition): told.offset for told in self.fetched[before:]
        }

    @property
    def has_read_all(self) -> bool:
        at_the_end = all(cursor.is_at_the_end for cursor in self.last_reader.cursors.values())
        return at_the_end and not self._running

    def counts(self) -> dict[str, int]:
        """How much there was."""
        found = Counts(f"transactions {each.outcome.value}" for each in self.transactions)
        found["offsets committed"] = len(self.commits)
        found["offsets fetched"] = len(self.fetched)
        found["coordinators compared"] = self.inspection.memory.compared
        found["offsets superseded"] = self.inspection.memory.superseded
        return found
