"""The registry is the list that clients were verified against."""

import pytest

from tidemark.protocol.messages.heartbeat import HeartbeatRequest
from tidemark.protocol.registry import APIS, Api, api_of

# Older clients test for exact versions to switch features on, newer ones take the highest they
# know: neither end of these ranges may move without trying the clients again.
VERIFIED = {
    0: ("Produce", 0, 13),
    1: ("Fetch", 4, 18),
    2: ("ListOffsets", 1, 9),
    3: ("Metadata", 0, 13),
    8: ("OffsetCommit", 2, 10),
    9: ("OffsetFetch", 1, 10),
    10: ("FindCoordinator", 0, 5),
    11: ("JoinGroup", 0, 9),
    12: ("Heartbeat", 0, 4),
    13: ("LeaveGroup", 0, 5),
    14: ("SyncGroup", 0, 5),
    15: ("DescribeGroups", 0, 6),
    16: ("ListGroups", 0, 5),
    17: ("SaslHandshake", 0, 1),
    18: ("ApiVersions", 0, 4),
    19: ("CreateTopics", 2, 7),
    20: ("DeleteTopics", 1, 6),
    21: ("DeleteRecords", 0, 2),
    22: ("InitProducerId", 0, 5),
    23: ("OffsetForLeaderEpoch", 2, 4),
    24: ("AddPartitionsToTxn", 0, 5),
    25: ("AddOffsetsToTxn", 0, 4),
    26: ("EndTxn", 0, 5),
    27: ("WriteTxnMarkers", 1, 2),
    28: ("TxnOffsetCommit", 0, 5),
    29: ("DescribeAcls", 1, 3),
    30: ("CreateAcls", 1, 3),
    31: ("DeleteAcls", 1, 3),
    32: ("DescribeConfigs", 1, 4),
    33: ("AlterConfigs", 0, 2),
    35: ("DescribeLogDirs", 1, 4),
    36: ("SaslAuthenticate", 0, 2),
    37: ("CreatePartitions", 0, 3),
    42: ("DeleteGroups", 0, 2),
    43: ("ElectLeaders", 0, 2),
    44: ("IncrementalAlterConfigs", 0, 1),
    45: ("AlterPartitionReassignments", 0, 1),
    46: ("ListPartitionReassignments", 0, 0),
    47: ("OffsetDelete", 0, 0),
    34: ("AlterReplicaLogDirs", 1, 2),
    74: ("ListConfigResources", 0, 1),
    48: ("DescribeClientQuotas", 0, 1),
    49: ("AlterClientQuotas", 0, 1),
    75: ("DescribeTopicPartitions", 0, 0),
    50: ("DescribeUserScramCredentials", 0, 0),
    51: ("AlterUserScramCredentials", 0, 0),
    55: ("DescribeQuorum", 0, 2),
    60: ("DescribeCluster", 0, 2),
    61: ("DescribeProducers", 0, 0),
    65: ("DescribeTransactions", 0, 0),
    66: ("ListTransactions", 0, 2),
    68: ("ConsumerGroupHeartbeat", 0, 1),
    69: ("ConsumerGroupDescribe", 0, 1),
}

# No client but ours knows them; all are to pass over them (tests/clients).
OWN = {
    20_000: ("MoveLeaders", 0, 0),
    20_001: ("BalanceLeaders", 0, 0),
    20_002: ("SetBrokerState", 0, 0),
    20_003: ("DescribeBrokers", 0, 0),
    20_004: ("SetObservers", 0, 0),
    20_005: ("ConfirmLeadership", 0, 0),
    20_006: ("DescribeReplicas", 0, 1),
    20_007: ("DescribeRebalances", 0, 0),
}


def test_what_may_be_advertised_is_what_was_verified() -> None:
    assert {
        key: (api.name, api.min_version, api.max_version) for key, api in APIS.items()
    } == VERIFIED | OWN


def test_only_keys_that_kafka_does_not_use_are_our_own() -> None:
    assert {key for key, api in APIS.items() if api.is_own} == OWN.keys()
    assert max(VERIFIED) < min(OWN)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_what_is_advertised_is_spoken_except_old_produce(api: Api) -> None:
    refused = [v for v in range(api.min_version, api.max_version + 1) if not api.speaks(v)]
    assert refused == ([0, 1, 2] if api.name == "Produce" else [])
    assert not api.speaks(api.max_version + 1)
    assert not api.speaks(-1)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_the_table_says_what_the_declarations_say(api: Api) -> None:
    for cls, kind in ((api.request, "Request"), (api.response, "Response")):
        assert cls.__name__ == api.name + kind
        assert (cls.first_version, cls.last_version) == (api.spoken_min_version, api.max_version)
        assert cls.flexible_since == api.flexible_since


def test_an_api_is_found_by_its_request() -> None:
    assert api_of(HeartbeatRequest) is APIS[12]
