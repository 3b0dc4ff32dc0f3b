"""ApiVersions: what a broker speaks."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@message(versions=(0, 4), flexible_since=3)
class ApiVersionsRequest(Message):
    """Asks which APIs the broker speaks; the first request of a connection."""

    client_software_name: str = wire(
        STRING, "The name of the client library.", since=3, default="", ignorable=True
    )
    client_software_version: str = wire(STRING, "Its version.", since=3, default="", ignorable=True)


@struct
class ApiVersion(Struct):
    """An API and the range of versions it is spoken in."""

    api_key: int = wire(INT16, "The API's key.")
    min_version: int = wire(INT16, "The first version that is spoken.")
    max_version: int = wire(INT16, "The last version that is spoken.")


@struct
class SupportedFeatureKey(Struct):
    """A feature that the broker can take part in."""

    name: str = wire(STRING, "The feature's name.")
    min_version: int = wire(INT16, "The lowest level it can be at; 0 only from version 4.")
    max_version: int = wire(INT16, "The highest level it can be at.")


@struct
class FinalizedFeatureKey(Struct):
    """A feature that is in force."""

    name: str = wire(STRING, "The feature's name.")
    max_version_level: int = wire(INT16, "The highest level that is in force.")
    min_version_level: int = wire(INT16, "The lowest level that is in force.")


@message(versions=(0, 4), flexible_since=3)
class ApiVersionsResponse(Message):
    """The APIs and the versions of them that the broker speaks. Its response header is always
    version 0, so that a client that knows nothing yet can read it.
    """

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    api_keys: Sequence[ApiVersion] = wire(array(ApiVersion), "The APIs.")
    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=1,
        default=0,
        ignorable=True,
    )
    supported_features: Sequence[SupportedFeatureKey] = wire(
        array(SupportedFeatureKey),
        "The cluster features that the broker can take part in.",
        since=3,
        tag=0,
        default=(),
        ignorable=True,
    )
    finalized_features_epoch: int = wire(
        INT64,
        "The version of the list of features in force, -1 if it is not known.",
        since=3,
        tag=1,
        default=-1,
        ignorable=True,
    )
    finalized_features: Sequence[FinalizedFeatureKey] = wire(
        array(FinalizedFeatureKey),
        "The cluster features in force.",
        since=3,
        tag=2,
        default=(),
        ignorable=True,
    )
    zk_migration_ready: bool = wire(
        BOOL,
        "Whether a move away from ZooKeeper may begin; never here.",
        since=3,
        tag=3,
        default=False,
        ignorable=True,
    )
