"""ListConfigResources: what there is that has configs."""

from collections.abc import Sequence
from typing import Final

from tidemark.protocol.schema import (
    INT8,
    INT16,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)

CLIENT_METRICS: Final = 16
"""The only kind of resource that version 0 knows."""


@message(versions=(0, 1), flexible_since=0)
class ListConfigResourcesRequest(Message):
    """Asks for the names of resources, of some kinds or of all."""

    resource_types: Sequence[int] = wire(
        array(INT8), "The kinds asked for; none is all of them.", since=1, default=()
    )


@struct
class ConfigResource(Struct):
    """A resource."""

    resource_name: str = wire(STRING, "Its name.")
    resource_type: int = wire(
        INT8,
        "Its kind: 2 a topic, 4 a broker.",
        since=1,
        default=CLIENT_METRICS,
        ignorable=True,
    )


@message(versions=(0, 1), flexible_since=0)
class ListConfigResourcesResponse(Message):
    """The resources there are."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    config_resources: Sequence[ConfigResource] = wire(
        array(ConfigResource), "The resources, by kind and name."
    )
