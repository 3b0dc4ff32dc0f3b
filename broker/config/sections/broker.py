"""What and where a broker is."""

from pathlib import Path
from typing import Final

import attrs

from tidemark.broker.config.addresses import Address, Endpoint
from tidemark.broker.config.fields import setting
from tidemark.broker.config.kinds import Endpoints, Folder, Optionally, Pairs, Text
from tidemark.partitions.state_machines.config_table import Whole, whole_int

_SECTION: Final = "The broker"


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Identity:
    node_id: int = setting(
        "node.id",
        whole_int(0),
        1,
        "The number of this broker in its cluster.",
        section=_SECTION,
        aliases=("broker.id",),
    )
    cluster_id: str | None = setting(
        "cluster.id",
        Optionally(Text()),
        None,
        "The id that a new data directory gets; a random one if none is given. "
        "A directory that has one already must have this one.",
        section=_SECTION,
    )
    data_dir: Path = setting(  # noqa: RUF009 # makes an attrs field; a Path never changes
        "data.dir",
        Folder(),
        Path("tidemark-data"),
        "The folder that holds everything the broker keeps. It is made if it is missing.",
        section=_SECTION,
        aliases=("log.dirs", "log.dir"),
    )
    listeners: tuple[Endpoint, ...] = setting(
        "listeners",
        Endpoints(),
        (Endpoint("PLAINTEXT", Address("127.0.0.1", 9092), is_named=False),),
        "Where clients connect: `host:port`, or `NAME://host:port` with commas between. "
        "An empty host is every interface, by IPv4; `[::]` is every one, by IPv6 alone. Port 0 is "
        "any free port.",
        section=_SECTION,
        aliases=("listen",),
    )
    advertised_listeners: tuple[Endpoint, ...] = setting(
        "advertised.listeners",
        Endpoints(),
        (),
        "What clients are told to connect to, for each listener by its name. Without it, the "
        "address listened on; on every interface, the address by which the client came.",
        section=_SECTION,
        aliases=("advertise",),
    )
    listener_security_protocol_map: tuple[tuple[str, str], ...] = setting(
        "listener.security.protocol.map",
        Pairs(),
        (),
        "The protocol of each listener that is not named after one: `PLAINTEXT`, "
        "`SASL_PLAINTEXT`, `SSL` or `SASL_SSL`.",
        section=_SECTION,
    )
    broker_rack: str | None = setting(
        "broker.rack",
        Optionally(Text()),
        None,
        "The rack or zone this broker is in: clients are told, and replicas are spread over racks.",
        section=_SECTION,
        aliases=("rack",),
    )
    stop_timeout_ms: int = setting(
        "stop.timeout.ms",
        Whole(0),
        10_000,
        "How long a graceful stop waits for requests in progress.",
        section=_SECTION,
        aliases=("controlled.shutdown.timeout.ms",),
    )
