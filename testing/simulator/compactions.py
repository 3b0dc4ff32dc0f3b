"""What a broker's cleaner does to a log, all at once; in some runs the power fails meanwhile, and
some runs give it time (`compacting`).

What is compacted is judged: nobody who keeps the last value of each key ends with another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.storage.compaction.at_once import compact_at_once
from tidemark.partitions.storage.compaction.job import Tally
from tidemark.partitions.storage.compaction.settings import CompactionSettings
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import ProducerId
from tidemark.testing.checkers import keyed_values
from tidemark.testing.simulator.watch import pieces

if TYPE_CHECKING:
    from tidemark.testing.simulator.process import Process

_SYNCS: Final = (1, 2, 3, 3, 3, 4, 4, 5)
"""After so many the power fails: mostly while a new segment takes the place of the old ones."""


def compact(process: Process, key: PartitionKey) -> None:
    """Where there is nothing to compact, nothing."""
    replica, broker = process.node.get(key), process.broker
    if replica is None or replica.failure is not None or replica.is_held:
        return
    settings = _settings(process)
    if process.world.knobs.compaction_seconds:
        process.compactions.begin(replica, settings)
        return
    counts, files = process.world.coverage.counts, broker.files
    strikes = process.world.knobs.compaction_strikes
    if strikes and broker.rng.random() < strikes:
        files.strikes_in = broker.rng.choice(_SYNCS)
    try:
        tally = _run(process, replica, settings)
    except OSError as error:
        if replica.log.has_failed:
            process.disk_failed(error)
        else:  # the next compaction tries it again
            counts["compactions failed"] += 1
        return
    finally:
        files.strikes_in = None
    if tally is not None:
        counts["compactions"] += 1
    if files.struck is not None:
        counts["compactions struck"] += 1
        broker.strike(files.struck)


def _settings(process: Process) -> CompactionSettings:
    return CompactionSettings(
        min_cleanable_dirty_ratio=0.0,
        delete_retention_ms=int(1000 * process.world.knobs.deletions_seconds),
    )


def _run(process: Process, replica: GroupReplica, settings: CompactionSettings) -> Tally | None:
    """Raises `OSError`, and `Violation`."""
    before = keyed_values.last_values(pieces(replica.log))
    tally = compact_at_once(
        process.broker.files,
        replica.log,
        settings,
        end_offset=replica.high_watermark,
        now_ms=process.wall_ms,
        producers=[ProducerId(each) for each, _ in replica.producers.producers],
    )
    if tally is not None:
        after = keyed_values.last_values(pieces(replica.log))
        keyed_values.stay(replica.name, before, after)
    return tally
