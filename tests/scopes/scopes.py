"""The scopes: each is small in another direction."""

from typing import Final

from tests.scopes.explore import Scope
from tidemark.partitions.raft.group import Limits

_ONE_RECORD_AT_A_TIME: Final = Limits(append_bytes_max=1, window_bytes=1)

SMALL: Final = (
    Scope(name="one election, message by message, and a record", campaigns=1, appends=1),
    Scope(name="a crash in an election", campaigns=1, crashes=1, syncs_at_once=False),
    Scope(name="two leaders and a record", elections=2, appends=1),
    Scope(name="two of two", nodes=2, elections=2, appends=2, duplicates=1, crashes=1),
    Scope(name="a leader, a record, and damage", elections=1, appends=1, damages=1),
)
"""All of their states, in seconds: a part of the test suite."""

LARGE: Final = (
    Scope(name="two campaigns, message by message", campaigns=2),
    Scope(name="three campaigns without pre-votes", campaigns=3, pre_votes=False),
    Scope(name="two campaigns and a crash", campaigns=2, crashes=1, syncs_at_once=False),
    Scope(name="four leaders", elections=4),
    Scope(name="three leaders and a record", elections=3, appends=1),
    Scope(name="two leaders and two records", elections=2, appends=2),
    Scope(name="two leaders, a record, and what comes twice", elections=2, appends=1, duplicates=2),
    Scope(name="two leaders, a record, a new beginning", elections=2, appends=1, resets=2),
    Scope(
        name="a leader, two records, a window, and a new beginning",
        elections=1,
        appends=2,
        resets=1,
        duplicates=1,
        limits=_ONE_RECORD_AT_A_TIME,
    ),
    Scope(name="two leaders, a record, and heartbeats", elections=2, appends=1, beats=2),
    Scope(
        name="two leaders, a record, a crash",
        elections=2,
        appends=1,
        crashes=1,
        syncs_at_once=False,
    ),
    Scope(name="two leaders and damage", elections=2, damages=1),
    Scope(name="two leaders, a record, and damage", elections=2, appends=1, damages=1),
    Scope(name="a leader, a record, and damage twice", elections=1, appends=2, damages=2),
    Scope(
        name="two of two, a campaign, and damage",
        nodes=2,
        elections=1,
        campaigns=1,
        appends=2,
        damages=1,
    ),
    Scope(
        name="from two voters to others",
        voters=(1, 2),
        elections=2,
        changes=1,
        all_alive=True,
    ),
    Scope(name="from three voters to others", elections=1, changes=2, all_alive=True),
    Scope(name="a hand-over", elections=1, appends=1, hand_overs=1, all_alive=True),
    Scope(name="five replicas, two leaders, a record", nodes=5, elections=2, appends=1),
)
"""`python -m tests.scopes`: as much of each as its time allows."""
