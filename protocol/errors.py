"""What can go wrong, in three kinds that never mix: our bug is an `assert`, the world is an
`OSError`, and *their bytes* or *their request* is one of these:

```
TidemarkError
├── ProtocolError            bytes that are not the protocol
│   ├── MalformedMessage     a message that does not parse
│   ├── FrameTooLarge        a length beyond the limit, or negative
│   └── UnsupportedVersion   an API or version that is not spoken
├── CorruptBatch             a record batch whose bytes do not hold together
│   └── UnsupportedMagic     a record batch in another format than v2
├── RequestError             a request that is answered with one of Kafka's error codes
├── ConfigError              an option, file or topic config that cannot be used
└── StorageError             a data directory that cannot be served
```

Wire codes are one enumeration (`ErrorCode`), not a class each.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ErrorCode(IntEnum):
    """Kafka's error codes, as they travel."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    TRANSACTION_ABORTABLE = 120
    INVALID_REGULAR_EXPRESSION = 128

    @classmethod
    def _missing_(cls, value: object) -> ErrorCode | None:
        """A newer broker's: the next release may know what it means."""
        return cls.UNKNOWN_SERVER_ERROR if isinstance(value, int) else None

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later, perhaps at another broker."""
        return self in _RETRIABLE


_RETRIABLE = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class TidemarkError(Exception):
    """The root of every error that is not our bug and not the operating system's."""


class ProtocolError(TidemarkError):
    """Bytes on a connection that are not the protocol; the connection cannot go on."""


class MalformedMessage(ProtocolError):
    """A message that does not parse as its API and version say it should."""


class FrameTooLarge(ProtocolError):
    """A frame whose stated length is negative or beyond the limit: often another protocol's words,
    which it then names."""

    def __init__(self, length: int, frame_bytes_max: int) -> None:
        other = _other_protocol(length.to_bytes(4, "big", signed=True))
        super().__init__(other or f"a frame of {length} bytes; the limit is {frame_bytes_max}")
        self.length = length
        self.frame_bytes_max = frame_bytes_max


_HTTP: Final = frozenset({b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"CONN", b"HTTP"})
_TLS: Final = frozenset({b"\x16\x03", b"\x15\x03"})
"""A record of a handshake or an alert, of SSL 3 or any TLS (RFC 8446, section 5.1)."""


def _other_protocol(start: bytes) -> str | None:
    """What to say of a stream that starts with these four bytes, if no Kafka client's does."""
    if start in _HTTP:
        return "it speaks HTTP; metrics and health have a port of their own (http.listen)"
    if start[:2] in _TLS:
        return (
            "it speaks TLS, and this side does not (a client's security.protocol=SSL or SASL_SSL, "
            "a broker's peer.ssl.certificate.location)"
        )
    return None


class UnsupportedVersion(ProtocolError):
    """An API key that is unknown, or a version outside the range that is spoken.

    `correlation_id` is the request's where there is one: ApiVersions must be answered even so.
    """

    def __init__(self, api_key: int, version: int, correlation_id: int | None = None) -> None:
        super().__init__(f"API {api_key} version {version} is not supported")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id


class CorruptBatch(TidemarkError):
    """A record batch whose bytes do not hold together; `at` is its byte position in the input."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(f"corrupt record batch at byte {at}: {what}")
        self.at = at
        self.what = what


class UnsupportedMagic(CorruptBatch):
    """A record batch in the format of Kafka before 0.11, or in none that is known."""

    def __init__(self, at: int, magic: int) -> None:
        super().__init__(at, f"its format (magic) is {magic}; only 2 is spoken")
        self.magic = magic


# A sentence quotes what it is about, which may be as long as a string can be, and has to be one
# itself.
_SENTENCE_LENGTH_MAX: Final = 2_000


class RequestError(TidemarkError):
    """What a request is answered with instead of success: one of Kafka's codes, and a sentence.

    On the server a handler raises it; in the client library it is what the caller gets.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        if message is not None:
            message = shortened(message)
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.message = message

    @property
    def retriable(self) -> bool:
        return self.code.retriable


def shortened(sentence: str) -> str:
    """What was wrong is said at either end; what was sent is quoted between."""
    if len(sentence) <= _SENTENCE_LENGTH_MAX:
        return sentence
    half = _SENTENCE_LENGTH_MAX // 2
    return f"{sentence[:half]}...{sentence[-half:]}"


class ConfigError(TidemarkError):
    """An option, a configuration file or a topic config that cannot be used, and what to do."""


class StorageError(TidemarkError):
    """A data directory, or a part of one, that cannot be served, and what to do."""
