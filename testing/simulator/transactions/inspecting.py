"""Who looks into coordinators all the time, and does nothing: neither they nor chance notice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tidemark.testing.simulator.transactions.coordinators import Coordinators
from tidemark.testing.simulator.transactions.memory import MemoryJudge
from tidemark.testing.simulator.transactions.patience import Patience
from tidemark.testing.simulator.transactions.tables import judge_table

if TYPE_CHECKING:
    from tidemark.testing.simulator.broker import Broker
    from tidemark.testing.simulator.world import World

_LOOK_SECONDS: Final = 0.3


class Inspection:
    """Of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.memory = MemoryJudge()
        self._patience = Patience()

    def start(self) -> None:
        self._world.queue.after(_LOOK_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self.look()
        self._world.queue.after(_LOOK_SECONDS, self._look_again)

    def look(self, *, from_the_start: bool = False) -> None:
        """Raises `Violation`. `from_the_start`: read the logs back as they are by now."""
        now = self._world.queue.now
        for broker, coordinators in self._coordinators():
            for ids in coordinators.transactions.served():
                self._patience.look(broker, ids, now)
                self.memory.judge_transactions(ids, from_the_start=from_the_start)
            groups = coordinators.groups
            for served in groups.served():
                self.memory.judge_groups(served, groups.settings, from_the_start=from_the_start)

    def look_at_tables(self) -> None:
        """Of all replicas. Raises `Violation`."""
        for broker in self._world.brokers.values():
            replicas = {} if broker.process is None else broker.process.replicas
            for replica in replicas.values():
                if replica.failure is None:
                    judge_table(replica)

    def _coordinators(self) -> Iterator[tuple[Broker, Coordinators]]:
        for broker in self._world.brokers.values():
            if broker.process is not None and broker.process.transactions is not None:
                yield broker, broker.process.transactions.coordinators
