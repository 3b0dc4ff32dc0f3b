"""One connection to a broker, without the connection: what bytes to send, what arrived bytes mean.

Knows correlation ids, the versions both sides speak, and frames. Knows nothing of sockets, time or
retries, so that the trio connection and the blocking one are the same thing around it:

1. send `hello()`, feed what arrives; `settle_versions` says whether to send something more;
2. send what `request` returns;
3. receive into `space()`, say how much with `received`, and get the answers, in the order of the
   requests.

Any `ProtocolError` is final: after it, where the next frame begins is not known.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

from tidemark.client.codes import error_code
from tidemark.client.frame_buffer import FrameBuffer
from tidemark.protocol.buffers import Buffers
from tidemark.protocol.errors import ErrorCode, MalformedMessage, RequestError
from tidemark.protocol.frames import decode_correlation_id, decode_response, encode_request
from tidemark.protocol.messages import fetch, offset_commit, offset_fetch, produce
from tidemark.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidemark.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tidemark.protocol.registry import APIS, Api, api_of
from tidemark.protocol.schema import Message
from tidemark.protocol.values import dataclass

SOFTWARE_NAME: Final = "tidemark"
_API_VERSIONS: Final = api_of(ApiVersionsRequest)
_SASL_HANDSHAKE: Final = api_of(SaslHandshakeRequest)
_NO_LIMITS: Final[Mapping[int, int]] = {}
_NAMES_UNTIL: Final = {
    api_of(produce.ProduceRequest).key: produce.NAMES_UNTIL,
    api_of(fetch.FetchRequest).key: fetch.NAMES_UNTIL,
    api_of(offset_commit.OffsetCommitRequest).key: offset_commit.NAMES_UNTIL,
    api_of(offset_fetch.OffsetFetchRequest).key: offset_fetch.NAMES_UNTIL,
}
"""The client calls topics by name; newer versions know only ids."""


@dataclass(frozen=True, slots=True)
class _Awaited:
    correlation_id: int
    api: Api
    version: int


class Wire:
    """The state of one connection; see the module."""

    def __init__(
        self,
        client_id: str,
        *,
        software_version: str,
        frame_bytes_max: int,
        version_max: Mapping[int, int] = _NO_LIMITS,
        is_encrypted: bool = False,
    ) -> None:
        self._client_id = client_id
        self._version_max = {**_NAMES_UNTIL, **version_max}
        self._software_version = software_version
        self._is_encrypted = is_encrypted
        self._frames = FrameBuffer(frame_bytes_max)
        self._awaited: deque[_Awaited] = deque()
        self._next_correlation_id = 0
        self._is_served = False
        """Whether anything but the versions has been answered."""
        self._versions: dict[int, int] = {}
        self.ranges: Mapping[int, tuple[int, int]] = {}
        """What the broker said it speaks, by API key; empty until it is settled."""
        self.features: Mapping[str, int] = {}
        """Kafka's names for what the cluster can do, and the level that is in force."""

    def receive_into(self, memory: Buffers | None) -> None:
        """Have large answers from now on in `memory`, or in memory of their own.

        An answer is written over once nobody has a view of it any more; see `Buffers` for what
        counts as one.
        """
        self._frames.memory = memory

    @property
    def awaited(self) -> int:
        """How many requests have no answer yet."""
        return len(self._awaited)

    @property
    def hung_up(self) -> str:
        """What to say when the other side closes the connection."""
        if self.ranges:
            hint = ""
            if not self._is_served and self._awaited and _SASL_HANDSHAKE.key in self.ranges:
                # As brokers do with those who do not say first who they are.
                hint = " at the first request: does it ask for SASL (security.protocol)?"
            return f"the broker closed the connection{hint}"
        hint = "" if self._is_encrypted else ", and without TLS (security.protocol)"
        return (
            f"it closed the connection without an answer: is this a port for Kafka's clients{hint}?"
        )

    def hello(self) -> bytes:
        """The first request of a connection, in the newest version that we speak."""
        return self._ask_versions(_API_VERSIONS.max_version)

    def settle_versions(self, answer: ApiVersionsResponse) -> bytes | None:
        """Take the answer to `hello` in: None when all is settled, else the request to send next.

        A broker that does not know our version says which it does, or nothing; then version 0 is
        asked for, which all know. Raises `RequestError` if the broker refuses that too.
        """
        code = error_code(answer.error_code)
        if code is ErrorCode.UNSUPPORTED_VERSION:
            asked = self._versions[_API_VERSIONS.key]
            if asked == 0:
                raise RequestError(code, "the broker speaks no version of ApiVersions")
            stated = [
                api.max_version for api in answer.api_keys if api.api_key == _API_VERSIONS.key
            ]
            return self._ask_versions(min(stated[0], asked - 1) if stated else 0)
        if code is not ErrorCode.NONE:
            raise RequestError(code, "the broker refused ApiVersions")
        self.ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self.features = {each.name: each.max_version_level for each in answer.finalized_features}
        self._versions = _common_versions(self.ranges, self._version_max)
        return None

    def _ask_versions(self, version: int) -> bytes:
        self._versions = {_API_VERSIONS.key: version}
        return self.request(
            ApiVersionsRequest(
                client_software_name=SOFTWARE_NAME,
                client_software_version=self._software_version,
            )
        )

    def speaks(self, request: type[Message]) -> bool:
        """Whether this request can travel on this connection."""
        return api_of(request).key in self._versions

    def version(self, request: type[Message]) -> int:
        """The version in which this request travels on this connection: the newest of both.

        Raises `RequestError` with UNSUPPORTED_VERSION if there is none.
        """
        api = api_of(request)
        version = self._versions.get(api.key)
        if version is None:
            raise RequestError(ErrorCode.UNSUPPORTED_VERSION, f"the broker has no {api.name}")
        return version

    def request(self, message: Message, *, is_answered: bool = True) -> bytes:
        """The frame of a request; its answer will be expected in its turn, if it gets one.

        Raises `RequestError` if the broker does not speak it, `MalformedMessage` if it has
        something to say that the common version cannot.
        """
        api = api_of(type(message))
        version = self.version(type(message))
        correlation_id = self._next_correlation_id
        frame = encode_request(message, version, correlation_id, self._client_id)
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        if is_answered:
            self._awaited.append(_Awaited(correlation_id, api, version))
        return frame

    def space(self) -> memoryview:
        """Where the next received bytes go; never empty."""
        return self._frames.space()

    def received(self, count: int) -> list[Message]:
        """`count` bytes more are in `space()`: the answers that are complete now, oldest first."""
        return [self._decode(frame) for frame in self._frames.received(count)]

    def _decode(self, frame: memoryview) -> Message:
        if not self._awaited:
            raise MalformedMessage("an answer to no request")
        awaited = self._awaited.popleft()
        correlation_id = decode_correlation_id(frame)
        if correlation_id != awaited.correlation_id:
            raise MalformedMessage(
                f"an answer to request {correlation_id} where {awaited.correlation_id}'s was due"
            )
        if awaited.api is _API_VERSIONS and awaited.version > 0 and _is_unsupported_version(frame):
            return _unsupported_version(frame)
        self._is_served |= awaited.api is not _API_VERSIONS
        return decode_response(awaited.api, awaited.version, frame)[1]


def _is_unsupported_version(frame: memoryview) -> bool:
    """Whether an ApiVersions answer says so. Its code is at the same place in all of them."""
    return int.from_bytes(frame[4:6], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION


def _unsupported_version(frame: memoryview) -> ApiVersionsResponse:
    """That answer, which is in version 0 whatever was asked in.

    librdkafka's mock broker answers in a format of its own; that it does not know the version is
    clear all the same, and that it says nothing about those it does.
    """
    try:
        message = decode_response(_API_VERSIONS, 0, frame)[1]
    except MalformedMessage:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=())
    assert isinstance(message, ApiVersionsResponse)
    return message


def _common_versions(
    ranges: Mapping[int, tuple[int, int]], version_max: Mapping[int, int]
) -> dict[int, int]:
    """The newest version of each API that both sides speak, and that is within the limits."""
    common: dict[int, int] = {}
    for key, (lowest, highest) in ranges.items():
        api = APIS.get(key)
        if api is None:
            continue
        newest = min(highest, api.max_version, version_max.get(key, api.max_version))
        if max(lowest, api.spoken_min_version) <= newest:
            common[key] = newest
    return common
