"""The APIs: their keys, their messages and the versions they are spoken in.

What is not in `APIS` is neither advertised nor answered. The ranges are those of the messages'
declarations. One API advertises more than it speaks: clients built on librdkafka before 2.11.1
send gzip and snappy uncompressed to a broker that does not list Produce 0 (KAFKA-18659), so it is
listed, and refused like any other version that is not spoken.

The declarations themselves are imported when an API's messages are first asked for: they are a
tenth of a broker's start, and most of them are for requests that come later, or never.

Keys from 20,000 on are our own: what Kafka has no words for. They are listed and answered like any
others; clients pass over keys that they do not know.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.protocol.schema.declaration import Message

API_VERSIONS_KEY: Final = 18
OWN_KEYS_SINCE: Final = 20_000

_MESSAGES: Final = "tidemark.protocol.messages"
_WORD: Final = re.compile("(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One API. `min_version` and `max_version` are what may be advertised, inclusive."""

    key: int
    name: str
    module: str
    """What its modules are called, here and wherever else each API has one."""
    response_module: str
    min_version: int
    max_version: int
    flexible_since: int | None
    spoken_min_version: int

    @property
    def request(self) -> "type[Message]":
        return _messages(self.key)[0]

    @property
    def response(self) -> "type[Message]":
        return _messages(self.key)[1]

    def speaks(self, version: int) -> bool:
        """Whether a request of `version` is answered, rather than only advertised."""
        return self.spoken_min_version <= version <= self.max_version

    @property
    def is_own(self) -> bool:
        """Whether only Tidemark speaks it."""
        return self.key >= OWN_KEYS_SINCE

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since

    def response_header_is_flexible(self, version: int) -> bool:
        """Whether tagged fields follow the correlation id.

        Never in ApiVersions: its client does not know yet what the broker can say.
        """
        return self.key != API_VERSIONS_KEY and self.is_flexible(version)


def _api(
    key: int,
    name: str,
    spoken: tuple[int, int],
    flexible_since: int | None,
    *,
    advertised_since: int | None = None,
    response_module: str | None = None,
) -> Api:
    """A row of the table. It repeats the versions of the declarations, which are not read for it;
    they are held equal when they are."""
    module = _WORD.sub("_", name).lower()
    return Api(
        key=key,
        name=name,
        module=module,
        response_module=response_module or module,
        min_version=spoken[0] if advertised_since is None else advertised_since,
        max_version=spoken[1],
        flexible_since=flexible_since,
        spoken_min_version=spoken[0],
    )


APIS: Final[Mapping[int, Api]] = MappingProxyType(
    {
        api.key: api
        for api in (
            _api(0, "Produce", (3, 13), 9, advertised_since=0),
            _api(1, "Fetch", (4, 18), 12),
            _api(2, "ListOffsets", (1, 9), 6),
            _api(3, "Metadata", (0, 13), 9),
            _api(8, "OffsetCommit", (2, 10), 8),
            _api(9, "OffsetFetch", (1, 10), 6),
            _api(10, "FindCoordinator", (0, 5), 3),
            _api(11, "JoinGroup", (0, 9), 6),
            _api(12, "Heartbeat", (0, 4), 4),
            _api(13, "LeaveGroup", (0, 5), 4),
            _api(14, "SyncGroup", (0, 5), 4),
            _api(15, "DescribeGroups", (0, 6), 5),
            _api(16, "ListGroups", (0, 5), 3),
            _api(17, "SaslHandshake", (0, 1), None),
            _api(API_VERSIONS_KEY, "ApiVersions", (0, 4), 3),
            _api(19, "CreateTopics", (2, 7), 5),
            _api(20, "DeleteTopics", (1, 6), 4),
            _api(21, "DeleteRecords", (0, 2), 2),
            _api(22, "InitProducerId", (0, 5), 2),
            _api(23, "OffsetForLeaderEpoch", (2, 4), 4),
            _api(27, "WriteTxnMarkers", (1, 2), 1),
            _api(24, "AddPartitionsToTxn", (0, 5), 3),
            _api(25, "AddOffsetsToTxn", (0, 4), 3),
            _api(26, "EndTxn", (0, 5), 3),
            _api(28, "TxnOffsetCommit", (0, 5), 3),
            _api(29, "DescribeAcls", (1, 3), 2),
            _api(30, "CreateAcls", (1, 3), 2),
            _api(31, "DeleteAcls", (1, 3), 2),
            _api(32, "DescribeConfigs", (1, 4), 4),
            _api(33, "AlterConfigs", (0, 2), 2),
            _api(34, "AlterReplicaLogDirs", (1, 2), 2),
            _api(35, "DescribeLogDirs", (1, 4), 2),
            _api(36, "SaslAuthenticate", (0, 2), 2),
            _api(37, "CreatePartitions", (0, 3), 2),
            _api(42, "DeleteGroups", (0, 2), 2),
            _api(43, "ElectLeaders", (0, 2), 2),
            _api(44, "IncrementalAlterConfigs", (0, 1), 1),
            _api(45, "AlterPartitionReassignments", (0, 1), 0),
            _api(46, "ListPartitionReassignments", (0, 0), 0),
            _api(47, "OffsetDelete", (0, 0), None),
            _api(48, "DescribeClientQuotas", (0, 1), 1),
            _api(
                49, "AlterClientQuotas", (0, 1), 1, response_module="alter_client_quotas_response"
            ),
            _api(50, "DescribeUserScramCredentials", (0, 0), 0),
            _api(51, "AlterUserScramCredentials", (0, 0), 0),
            _api(55, "DescribeQuorum", (0, 2), 0, response_module="describe_quorum_response"),
            _api(60, "DescribeCluster", (0, 2), 0),
            _api(61, "DescribeProducers", (0, 0), 0),
            _api(65, "DescribeTransactions", (0, 0), 0),
            _api(66, "ListTransactions", (0, 2), 0),
            _api(
                68,
                "ConsumerGroupHeartbeat",
                (0, 1),
                0,
                response_module="consumer_group_heartbeat_response",
            ),
            _api(69, "ConsumerGroupDescribe", (0, 1), 0),
            _api(74, "ListConfigResources", (0, 1), 0),
            _api(75, "DescribeTopicPartitions", (0, 0), 0),
            # Our own.
            _api(20_000, "MoveLeaders", (0, 0), 0),
            _api(20_001, "BalanceLeaders", (0, 0), 0),
            _api(20_002, "SetBrokerState", (0, 0), 0),
            _api(20_003, "DescribeBrokers", (0, 0), 0),
            _api(20_004, "SetObservers", (0, 0), 0),
            _api(20_005, "ConfirmLeadership", (0, 0), 0),
            _api(20_006, "DescribeReplicas", (0, 1), 0),
            _api(20_007, "DescribeRebalances", (0, 0), 0),
        )
    }
)
"""By key: everything that a broker may advertise."""

_BY_REQUEST: Final = {f"{api.name}Request": api for api in APIS.values()}


def api_of(request_type: "type[Message]") -> Api:
    """The API that a request belongs to."""
    return _BY_REQUEST[request_type.__name__]


@cache
def _messages(key: int) -> "tuple[type[Message], type[Message]]":
    """The request and the response of an API."""
    api = APIS[key]
    request = _declared(api, api.module, f"{api.name}Request")
    return request, _declared(api, api.response_module, f"{api.name}Response")


def _declared(api: Api, module: str, name: str) -> "type[Message]":
    cls: type[Message] = getattr(import_module(f"{_MESSAGES}.{module}"), name)
    assert cls.first_version == api.spoken_min_version, name
    assert cls.last_version == api.max_version, name
    assert cls.flexible_since == api.flexible_since, name
    return cls
