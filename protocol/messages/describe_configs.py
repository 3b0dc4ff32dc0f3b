"""DescribeConfigs: the configs of topics and brokers."""

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
class DescribeConfigsResource(Struct):
    """A topic or a broker asked about."""

    resource_type: int = wire(INT8, "The kind of resource: 2 a topic, 4 a broker.")
    resource_name: str = wire(STRING, "The topic's name, or the broker's number.")
    configuration_keys: Sequence[str] | None = wire(
        array(STRING), "The names of the configs asked for; null asks for all.", null_since=0
    )


@message(versions=(1, 4), flexible_since=4, straight_line=True)
class DescribeConfigsRequest(Message):
    """Asks for the configs of topics and brokers."""

    resources: Sequence[DescribeConfigsResource] = wire(
        array(DescribeConfigsResource), "What is asked about."
    )
    include_synonyms: bool = wire(
        BOOL, "Whether to list the other places each value could come from.", default=False
    )
    include_documentation: bool = wire(
        BOOL, "Whether to explain each config.", since=3, default=False
    )


@struct
class DescribeConfigsSynonym(Struct):
    """A place a config's value can come from."""

    name: str = wire(STRING, "The config's name there.")
    value: str | None = wire(STRING, "Its value there.", null_since=0)
    source: int = wire(INT8, "Which place it is, as in `config_source`.")


@struct
class DescribeConfigsResourceResult(Struct):
    """A config."""

    name: str = wire(STRING, "The config's name.")
    value: str | None = wire(STRING, "Its value, null if it is sensitive.", null_since=0)
    read_only: bool = wire(BOOL, "Whether it cannot be altered.")
    config_source: int = wire(
        INT8,
        "Where the value comes from: 1 the topic, 2 and 3 the broker's dynamic configs and their "
        "defaults, 4 the broker's own configuration, 5 the default.",
        default=-1,
    )
    is_sensitive: bool = wire(BOOL, "Whether the value is a secret.")
    synonyms: Sequence[DescribeConfigsSynonym] = wire(
        array(DescribeConfigsSynonym),
        "The places the value could come from, the one in force first.",
    )
    config_type: int = wire(
        INT8,
        "The type of the value: 1 bool, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 "
        "class, 9 password.",
        since=3,
        default=0,
        ignorable=True,
    )
    documentation: str | None = wire(
        STRING, "What the config is for.", since=3, null_since=3, default="", ignorable=True
    )


@struct
class DescribeConfigsResult(Struct):
    """The configs of one resource."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    resource_type: int = wire(INT8, "The kind of resource: 2 a topic, 4 a broker.")
    resource_name: str = wire(STRING, "The topic's name, or the broker's number.")
    configs: Sequence[DescribeConfigsResourceResult] = wire(
        array(DescribeConfigsResourceResult, repeats=True),
        "Its configs, with those that hold their defaults.",
    )


@message(versions=(1, 4), flexible_since=4, straight_line=True)
class DescribeConfigsResponse(Message):
    """The configs that were asked for."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    results: Sequence[DescribeConfigsResult] = wire(
        array(DescribeConfigsResult), "The configs, by resource."
    )
