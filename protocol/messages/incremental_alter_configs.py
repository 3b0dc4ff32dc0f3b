"""IncrementalAlterConfigs: change single configs of a resource."""

from collections.abc import Sequence

from tidemark.protocol.messages.alter_configs import AlterConfigsResourceResponse
from tidemark.protocol.schema import (
    BOOL,
    INT8,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class AlterableConfig(Struct):
    """A change to one config."""

    name: str = wire(STRING, "The config's name.")
    config_operation: int = wire(
        INT8,
        "What to do: 0 set it, 1 put it back to its default, 2 append to a list, 3 take from a "
        "list.",
    )
    value: str | None = wire(
        STRING, "The value to set, append or take away; null to put it back.", null_since=0
    )


@struct
class AlterConfigsResource(Struct):
    """The changes to one topic or broker."""

    resource_type: int = wire(INT8, "The kind of resource: 2 a topic, 4 a broker.")
    resource_name: str = wire(STRING, "The topic's name, or the broker's number.")
    configs: Sequence[AlterableConfig] = wire(array(AlterableConfig), "The changes.")


@message(versions=(0, 1), flexible_since=1, straight_line=True)
class IncrementalAlterConfigsRequest(Message):
    """Changes single configs of topics or brokers, and leaves the others."""

    resources: Sequence[AlterConfigsResource] = wire(array(AlterConfigsResource), "What to change.")
    validate_only: bool = wire(BOOL, "Whether to check only, and change nothing.")


@message(versions=(0, 1), flexible_since=1, straight_line=True)
class IncrementalAlterConfigsResponse(Message):
    """Says which configs were changed."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    responses: Sequence[AlterConfigsResourceResponse] = wire(
        array(AlterConfigsResourceResponse), "The outcome, by resource."
    )
