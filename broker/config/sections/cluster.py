"""How brokers find each other, and what moves between them."""

from typing import Final

import attrs

from tidemark.broker.config.addresses import Address
from tidemark.broker.config.fields import setting
from tidemark.broker.config.kinds import AddressList, AddressText, Optionally
from tidemark.partitions.state_machines.config_table import OneOf, Whole, whole_int

_SECTION: Final = "The cluster"

FAILURE_TIMEOUT_MS_MIN: Final = 300
"""Three heartbeats."""


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Cluster:
    peer_listen: Address = setting(  # noqa: RUF009 # makes an attrs field; frozen
        "peer.listen",
        AddressText(),
        Address("127.0.0.1", 9093),
        "Where other brokers connect. Without `peer.ssl.certificate.location` nothing there asks "
        "who they are, and whoever reaches it can pose as one: keep it to a network of their own.",
        section=_SECTION,
    )
    peer_advertise: Address | None = setting(  # noqa: RUF009 # makes an attrs field; frozen
        "peer.advertise",
        Optionally(AddressText()),
        None,
        "What the other brokers are told to connect to; without it, the address listened on.",
        section=_SECTION,
    )
    join: tuple[Address, ...] = setting(
        "join",
        AddressList(),
        (),
        "Brokers of the cluster to belong to, by their `peer.listen`, with commas between; one "
        "that can be reached is enough. Without it a new data directory begins a cluster of its "
        "own.",
        section=_SECTION,
    )
    peer_failure_timeout_ms: int = setting(
        "peer.failure.timeout.ms",
        whole_int(FAILURE_TIMEOUT_MS_MIN),
        2000,
        "A broker that has not been heard for this long is taken for dead, and others are "
        "elected for what it led; a leader that hears no majority stops leading at the same "
        "time. A process that ends is noticed at once, whatever this says. It has to be longer "
        "than any pause of a healthy broker, and the same on all brokers.",
        section=_SECTION,
    )
    broker_session_timeout_ms: int = setting(
        "broker.session.timeout.ms",
        whole_int(0),
        9000,
        "How long clients are still told of a broker that is no longer heard, so that one that "
        "is soon back never leaves their lists. What it led is led by others long before.",
        section=_SECTION,
    )
    replica_selector: str = setting(
        "replica.selector",
        OneOf(("rack", "leader")),
        "rack",
        "Where a consumer that names its rack reads: `rack` is from the replica or observer in "
        "that rack, if there is one (KIP-392), `leader` is always from the leader.",
        section=_SECTION,
    )
    replica_read_lag_max_ms: int = setting(
        "replica.read.lag.max.ms",
        whole_int(0),
        5_000,
        "How far a replica or observer may be behind its leader while consumers read from it. "
        "The leader sends nobody to one that is further behind, which sends its readers back to"
        " the leader.",
        section=_SECTION,
    )
    leader_move_pause_max_ms: int = setting(
        "leader.move.pause.max.ms",
        whole_int(1, 10_000),
        500,
        "How long writes to a partition are held at most, in one attempt, while its lead is handed "
        "to another broker. It takes some tens of milliseconds if all is well; what takes longer "
        "is given up, and tried again.",
        section=_SECTION,
    )
    reassignment_bytes_per_second: int = setting(
        "reassignment.bytes.per.second",
        Whole(0),
        50 * 1024 * 1024,
        "The most bytes a second that this broker sends to new replicas on other brokers, all "
        "together, until they hold nearly everything; 0 is no limit. If more than this is "
        "written to a partition, its new replicas never catch up.",
        section=_SECTION,
    )
