"""What clients may take of a broker: connections, memory, bytes."""

from typing import Final

import attrs

from tidemark.broker.config.fields import setting
from tidemark.partitions.state_machines.config_table import Whole, whole_int

_SECTION: Final = "Connections and memory"


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Connections:
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes",
        whole_int(1024),
        100 * 1024 * 1024,
        "The largest request accepted; a larger one closes the connection.",
        section=_SECTION,
    )
    queued_max_request_bytes: int = setting(
        "queued.max.request.bytes",
        Whole(1024),
        256 * 1024 * 1024,
        "Memory for requests that are being received, all connections together. A connection that "
        "gets none is not read until there is some. At most a quarter of the memory that the "
        "broker may have (its container's, or the machine's), and no request may be larger.",
        section=_SECTION,
    )
    queued_max_response_bytes: int = setting(
        "queued.max.response.bytes",
        Whole(1024),
        256 * 1024 * 1024,
        "Memory for responses that clients have yet to read, all connections together. While it "
        "is used up, who has more than 16 KB of it is not read any further, and has to go after "
        "five seconds in which it reads less than 512 KB. At most a quarter of the memory.",
        section=_SECTION,
    )
    connection_requests_max: int = setting(
        "connection.requests.max",
        Whole(1),
        64,
        "Requests of one connection that may be unanswered before it is not read any further.",
        section=_SECTION,
    )
    connection_response_max_bytes: int = setting(
        "connection.response.max.bytes",
        Whole(1024),
        16 * 1024 * 1024,
        "Responses in memory that one connection may have waiting to be sent before it is not "
        "read any further. Records are sent from their files and do not count.",
        section=_SECTION,
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        Whole(0),
        600_000,
        "A connection that says nothing for this long is closed; 0 never closes one. A client that "
        "has TLS or SASL to go through has a minute for it.",
        section=_SECTION,
    )
    max_connections: int = setting(
        "max.connections",
        whole_int(1),
        10_000,
        "Connections open at once; one more is closed at once. At most half as many as the process "
        "may have descriptors.",
        section=_SECTION,
    )
    socket_send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes",
        whole_int(-1),
        -1,
        "The send buffer of a connection in the kernel; -1 leaves it to the kernel.",
        section=_SECTION,
    )
    socket_receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes",
        whole_int(-1),
        -1,
        "The receive buffer of a connection in the kernel; -1 leaves it to the kernel.",
        section=_SECTION,
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        whole_int(1024),
        55 * 1024 * 1024,
        "The most that one Fetch returns, whatever it asks for.",
        section=_SECTION,
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        "max.incremental.fetch.session.cache.slots",
        whole_int(0),
        1000,
        "Fetch sessions that are remembered at most: in one, a consumer and the broker tell each "
        "other only what has changed. A consumer that gets none does without; 0 is none at all.",
        section=_SECTION,
    )
    quota_window_num: int = setting(
        "quota.window.num",
        whole_int(2),
        11,
        "With `quota.window.size.seconds`: after a pause, a client may use up its quota of this"
        " many windows less one at once before it is held back.",
        section=_SECTION,
    )
    quota_window_size_seconds: int = setting(
        "quota.window.size.seconds",
        whole_int(1),
        1,
        "The length of such a window. The quota on the broker's time holds nobody back for "
        "longer than this at a time.",
        section=_SECTION,
    )
