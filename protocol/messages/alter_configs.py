"""AlterConfigs: replace all configs of a resource."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
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


@struct
class AlterableConfig(Struct):
    """A config to set."""

    name: str = wire(STRING, "The config's name.")
    value: str | None = wire(STRING, "Its new value.", null_since=0)


@struct
class AlterConfigsResource(Struct):
    """The new configs of one topic or broker."""

    resource_type: int = wire(INT8, "The kind of resource: 2 a topic, 4 a broker.")
    resource_name: str = wire(STRING, "The topic's name, or the broker's number.")
    configs: Sequence[AlterableConfig] = wire(array(AlterableConfig), "The configs.")


@message(versions=(0, 2), flexible_since=2, straight_line=True)
class AlterConfigsRequest(Message):
    """Replaces all configs of topics or brokers: what is not listed goes back to its default."""

    resources: Sequence[AlterConfigsResource] = wire(array(AlterConfigsResource), "What to change.")
    validate_only: bool = wire(BOOL, "Whether to check only, and change nothing.")


@struct
class AlterConfigsResourceResponse(Struct):
    """The outcome for one resource."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    resource_type: int = wire(INT8, "The kind of resource: 2 a topic, 4 a broker.")
    resource_name: str = wire(STRING, "The topic's name, or the broker's number.")


@message(versions=(0, 2), flexible_since=2, straight_line=True)
class AlterConfigsResponse(Message):
    """Says which configs were replaced."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    responses: Sequence[AlterConfigsResourceResponse] = wire(
        array(AlterConfigsResourceResponse), "The outcome, by resource."
    )
