"""Where a leader is that an answer to Produce or Fetch names (KIP-951)."""

from tidemark.protocol.schema import INT32, STRING, Struct, struct, wire


@struct
class NodeEndpoint(Struct):
    """How to reach a broker."""

    node_id: int = wire(INT32, "The broker's number.")
    host: str = wire(STRING, "The host name or address to connect to.")
    port: int = wire(INT32, "The port to connect to.")
    rack: str | None = wire(
        STRING, "The rack the broker stands in, if it was told.", null_since=0, default=None
    )
