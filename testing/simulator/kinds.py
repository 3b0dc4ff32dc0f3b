"""What may happen in a run, by name: faults, and the moments after which one is tempting."""

from typing import Final

TIMED_KINDS: Final = (
    "kill",
    "power",
    "kill all",
    "power all",
    "pause",
    "slow steps",
    "cut",
    "cut client",
    "isolate",
    "strand",
    "clog",
    "hold",
    "slow disk",
    "sync error",
    "disk full",
    "clock jump",
    "hand over",
    "move leader",
    "checkpoint",
    "trim",
    "reconfigure",
    "switch parents",
)
"""What happens at times drawn beforehand."""

REPLICA_KINDS: Final = ("move replicas",)
"""The same, and only where `moves_replicas` is: not among those that any seed may draw."""

AIMED_KINDS: Final = ("whisper", "forget", "muffle", "change again", "sever", "depose", "no room")
"""The same, and only shortly after moments, in runs with that aim."""

COMPACTION_KINDS: Final = ("compact",)
"""The same, and only in the layer of transactions."""

TRANSACTION_TRIGGERS: Final = (
    "transaction goes on",
    "transaction ends",
    "marker",
    "transaction over",
    "coordinator loading",
    "offsets in transaction",
)
"""Moments of a transaction."""

COORDINATOR_TRIGGERS: Final = (
    "transaction ends",
    "markers asked for",
    "coordinator loading",
    "offsets in transaction",
    "group commits",
)
"""Moments in which a coordinator has just written, or is about to read what is written."""

CALM_TRIGGERS: Final = ("calm", "leader", "commit")
"""Moments in which a leader has nothing new to say, or is about to."""

GROUP_TRIGGERS: Final = ("member joins", "member leaves", "group commits", "coordinator loading")
"""Moments of a group that changes."""

ROT_KINDS: Final = ("damage", "rot")
"""The same, in some runs of the full layer: a bit flips in a journal, or in a segment."""

DAMAGE_KINDS: Final = ("damage",)
"""The same, and only in the fast layer: a journal that has lost what it said last."""

REPLICA_TRIGGERS: Final = (
    "replica copying",
    "replica leading",
    "replica changing",
    "replica done",
    "replica joins",
    "replica given up",
    "replica forgotten",
)
"""Moments of a replica's move."""

DISK_KINDS: Final = ("sync error", "disk full")
"""Of disks that do not take what is written."""

TRIGGERS: Final = (
    "leader",
    "append",
    "ack",
    "commit",
    "truncate",
    "vote",
    "promise",
    "grant",
    "hand over",
    "catching up",
    "pausing",
    "handing over",
    "hold",
    "move ended",
    "checkpoint",
    "sync",
    "roll",
    "start",
)
"""Moments in a broker's life after which something is made to happen shortly."""


CORE_KINDS: Final = frozenset(
    {
        *("kill", "power", "kill all", "power all", "pause", "cut", "isolate", "strand", "clog"),
        *("hold", "slow disk", "hand over", "move leader", "trim", "reconfigure"),
    }
)
"""Of these, what the fast layer can do."""
