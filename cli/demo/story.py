"""What happens to the brokers during the demo: one is killed, others take over, it comes back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import trio

from tidemark.cli.demo.ledger import Ledger
from tidemark.cli.demo.patience import PATIENCE_SECONDS, DemoFailed, wait_until
from tidemark.cli.demo.watch import Watch
from tidemark.client import Admin, PartitionDescription
from tidemark.testing.process_cluster import ProcessCluster

KILL_AT: Final = 0.3
START_AT: Final = 0.6
"""When that happens, as fractions of the whole."""
_LOOK_SECONDS: Final = 0.05

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """One partition that got another leader."""

    before: PartitionDescription
    after: PartitionDescription
    pause_seconds: float
    """How long it acknowledged nothing."""

    def __str__(self) -> str:
        before, after = self.before, self.after
        return (
            f"partition {before.partition}: from broker {before.leader} (epoch "
            f"{before.leader_epoch}) to broker {after.leader} (epoch {after.leader_epoch}), "
            f"{self.pause_seconds:.2f} s without an acknowledgement"
        )


class Story:
    """Tells `say` what it does, as it does it; `states` says how each broker is meant to be."""

    def __init__(self, cluster: ProcessCluster, watch: Watch, ledger: Ledger, say: Say) -> None:
        self.states = dict.fromkeys(cluster.brokers, "up")
        self._cluster = cluster
        self._watch = watch
        self._ledger = ledger
        self._say = say

    async def play(self, seconds: float, *, lag_max: int) -> None:
        """Take about so many seconds. Raises `DemoFailed` if the cluster does not play along."""
        start = trio.current_time()
        await trio.sleep_until(start + KILL_AT * seconds)
        victim = await self._fail_over()
        await trio.sleep_until(start + START_AT * seconds)
        await self._bring_back(victim, lag_max=lag_max)
        await trio.sleep_until(start + seconds)

    async def _fail_over(self) -> int:
        await wait_until(lambda: self._leader() is not None, "partition 0 has no leader")
        victim = self._leader()
        assert victim is not None
        led = self._watch.sight.led_by(victim)
        numbers = ", ".join(f"{each.partition} (epoch {each.leader_epoch})" for each in led)
        self._say(f"kill -9 of broker {victim}, which leads partition {numbers}")
        killed = trio.current_time()
        self.states[victim] = "killed"
        await trio.to_thread.run_sync(self._cluster.brokers[victim].kill)
        for takeover in [await self._taken_over(before, killed) for before in led]:
            self._say(str(takeover))
        return victim

    def _leader(self) -> int | None:
        partitions = self._watch.sight.partitions
        return partitions[0].leader if partitions else None

    async def _taken_over(self, before: PartitionDescription, killed: float) -> Takeover:
        partition = before.partition

        def now() -> PartitionDescription:
            return self._watch.sight.partitions[partition]

        await wait_until(
            lambda: now().leader is not None and now().leader_epoch > before.leader_epoch,
            f"partition {partition} has no new leader",
        )
        pulse, seen = self._ledger.pulses[partition], trio.current_time()
        await wait_until(
            lambda: pulse.last is not None and pulse.last > seen,
            f"partition {partition} acknowledges nothing",
        )
        pause = pulse.longest_pause(trio.current_time(), since=killed)
        return Takeover(before=before, after=now(), pause_seconds=pause)

    async def _bring_back(self, victim: int, *, lag_max: int) -> None:
        self._say(f"start broker {victim} again")
        self.states[victim] = "starting"
        start = trio.current_time()
        await trio.to_thread.run_sync(self._cluster.brokers[victim].start)
        self.states[victim] = "up"
        self._say(f"broker {victim} serves after {trio.current_time() - start:.2f} s")
        await wait_until(
            lambda: self._watch.sight.is_caught_up(victim, lag_max=lag_max),
            f"broker {victim} has not caught up",
        )
        self._say(f"broker {victim} has caught up after {trio.current_time() - start:.2f} s")


async def wait_for_cluster(admin: Admin, count: int) -> None:
    """Until so many brokers are up, and all of them vote on the metadata.

    Before that the cluster works, but might not outlive the broker that began it.
    """
    up, voters = 0, 0
    with trio.move_on_after(PATIENCE_SECONDS):
        while True:
            up = len((await admin.describe_cluster()).brokers)
            metadata = await admin.describe_metadata_quorum()
            voters = 0 if metadata is None else len(metadata.voters)
            if up == voters == count:
                return
            await trio.sleep(_LOOK_SECONDS)
    raise DemoFailed(f"{up} of {count} brokers are up, and {voters} vote")
