"""The APIs: their keys, their messages and the versions they are spoken in.

What is not in `APIS` is neither advertised nor answered. The ranges are those of the messages'
declarations. One API advertises more than it speaks: clients built on librdkafka before 2.11.1
send gzip and snappy uncompressed to a broker that does not list Produce 0 (KAFKA-18659), so it is
listed, and refused like any other version that is not spoken.

Keys from 20,000 on are our own: what Kafka has no words for. They are listed and answered like any
others; clients pass over keys that they do not know.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tidemark.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_client_quotas_response,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    balance_leaders,
    confirm_leadership,
    consumer_group_describe,
    consumer_group_heartbeat,
    consumer_group_heartbeat_response,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_brokers,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_quorum_response,
    describe_rebalances,
    describe_replicas,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    move_leaders,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    set_broker_state,
    set_observers,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from tidemark.protocol.schema.declaration import Message
from tidemark.protocol.values import dataclass

API_VERSIONS_KEY: Final = 18
OWN_KEYS_SINCE: Final = 20_000


@dataclass(frozen=True, slots=True)
class Api:
    """One API. `min_version` and `max_version` are what may be advertised, inclusive."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible_since: int | None
    spoken_min_version: int

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
    request: type[Message],
    response: type[Message],
    *,
    advertised_since: int | None = None,
) -> Api:
    assert (request.first_version, request.last_version, request.flexible_since) == (
        response.first_version,
        response.last_version,
        response.flexible_since,
    )
    spoken_since = request.first_version
    return Api(
        key=key,
        name=request.__name__.removesuffix("Request"),
        request=request,
        response=response,
        min_version=spoken_since if advertised_since is None else advertised_since,
        max_version=request.last_version,
        flexible_since=request.flexible_since,
        spoken_min_version=spoken_since,
    )


APIS: Final[Mapping[int, Api]] = MappingProxyType(
    {
        api.key: api
        for api in (
            _api(0, produce.ProduceRequest, produce.ProduceResponse, advertised_since=0),
            _api(1, fetch.FetchRequest, fetch.FetchResponse),
            _api(2, list_offsets.ListOffsetsRequest, list_offsets.ListOffsetsResponse),
            _api(3, metadata.MetadataRequest, metadata.MetadataResponse),
            _api(8, offset_commit.OffsetCommitRequest, offset_commit.OffsetCommitResponse),
            _api(9, offset_fetch.OffsetFetchRequest, offset_fetch.OffsetFetchResponse),
            _api(
                10,
                find_coordinator.FindCoordinatorRequest,
                find_coordinator.FindCoordinatorResponse,
            ),
            _api(11, join_group.JoinGroupRequest, join_group.JoinGroupResponse),
            _api(12, heartbeat.HeartbeatRequest, heartbeat.HeartbeatResponse),
            _api(13, leave_group.LeaveGroupRequest, leave_group.LeaveGroupResponse),
            _api(14, sync_group.SyncGroupRequest, sync_group.SyncGroupResponse),
            _api(15, describe_groups.DescribeGroupsRequest, describe_groups.DescribeGroupsResponse),
            _api(16, list_groups.ListGroupsRequest, list_groups.ListGroupsResponse),
            _api(17, sasl_handshake.SaslHandshakeRequest, sasl_handshake.SaslHandshakeResponse),
            _api(
                API_VERSIONS_KEY, api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse
            ),
            _api(19, create_topics.CreateTopicsRequest, create_topics.CreateTopicsResponse),
            _api(20, delete_topics.DeleteTopicsRequest, delete_topics.DeleteTopicsResponse),
            _api(21, delete_records.DeleteRecordsRequest, delete_records.DeleteRecordsResponse),
            _api(
                22,
                init_producer_id.InitProducerIdRequest,
                init_producer_id.InitProducerIdResponse,
            ),
            _api(
                23,
                offset_for_leader_epoch.OffsetForLeaderEpochRequest,
                offset_for_leader_epoch.OffsetForLeaderEpochResponse,
            ),
            _api(
                27,
                write_txn_markers.WriteTxnMarkersRequest,
                write_txn_markers.WriteTxnMarkersResponse,
            ),
            _api(
                24,
                add_partitions_to_txn.AddPartitionsToTxnRequest,
                add_partitions_to_txn.AddPartitionsToTxnResponse,
            ),
            _api(
                25,
                add_offsets_to_txn.AddOffsetsToTxnRequest,
                add_offsets_to_txn.AddOffsetsToTxnResponse,
            ),
            _api(
                26,
                end_txn.EndTxnRequest,
                end_txn.EndTxnResponse,
            ),
            _api(
                28,
                txn_offset_commit.TxnOffsetCommitRequest,
                txn_offset_commit.TxnOffsetCommitResponse,
            ),
            _api(
                32,
                describe_configs.DescribeConfigsRequest,
                describe_configs.DescribeConfigsResponse,
            ),
            _api(33, alter_configs.AlterConfigsRequest, alter_configs.AlterConfigsResponse),
            _api(
                34,
                alter_replica_log_dirs.AlterReplicaLogDirsRequest,
                alter_replica_log_dirs.AlterReplicaLogDirsResponse,
            ),
            _api(
                35,
                describe_log_dirs.DescribeLogDirsRequest,
                describe_log_dirs.DescribeLogDirsResponse,
            ),
            _api(
                36,
                sasl_authenticate.SaslAuthenticateRequest,
                sasl_authenticate.SaslAuthenticateResponse,
            ),
            _api(
                37,
                create_partitions.CreatePartitionsRequest,
                create_partitions.CreatePartitionsResponse,
            ),
            _api(42, delete_groups.DeleteGroupsRequest, delete_groups.DeleteGroupsResponse),
            _api(43, elect_leaders.ElectLeadersRequest, elect_leaders.ElectLeadersResponse),
            _api(
                44,
                incremental_alter_configs.IncrementalAlterConfigsRequest,
                incremental_alter_configs.IncrementalAlterConfigsResponse,
            ),
            _api(
                45,
                alter_partition_reassignments.AlterPartitionReassignmentsRequest,
                alter_partition_reassignments.AlterPartitionReassignmentsResponse,
            ),
            _api(
                46,
                list_partition_reassignments.ListPartitionReassignmentsRequest,
                list_partition_reassignments.ListPartitionReassignmentsResponse,
            ),
            _api(47, offset_delete.OffsetDeleteRequest, offset_delete.OffsetDeleteResponse),
            _api(
                48,
                describe_client_quotas.DescribeClientQuotasRequest,
                describe_client_quotas.DescribeClientQuotasResponse,
            ),
            _api(
                49,
                alter_client_quotas.AlterClientQuotasRequest,
                alter_client_quotas_response.AlterClientQuotasResponse,
            ),
            _api(
                55,
                describe_quorum.DescribeQuorumRequest,
                describe_quorum_response.DescribeQuorumResponse,
            ),
            _api(
                60,
                describe_cluster.DescribeClusterRequest,
                describe_cluster.DescribeClusterResponse,
            ),
            _api(
                61,
                describe_producers.DescribeProducersRequest,
                describe_producers.DescribeProducersResponse,
            ),
            _api(
                65,
                describe_transactions.DescribeTransactionsRequest,
                describe_transactions.DescribeTransactionsResponse,
            ),
            _api(
                66,
                list_transactions.ListTransactionsRequest,
                list_transactions.ListTransactionsResponse,
            ),
            _api(
                68,
                consumer_group_heartbeat.ConsumerGroupHeartbeatRequest,
                consumer_group_heartbeat_response.ConsumerGroupHeartbeatResponse,
            ),
            _api(
                69,
                consumer_group_describe.ConsumerGroupDescribeRequest,
                consumer_group_describe.ConsumerGroupDescribeResponse,
            ),
            _api(
                74,
                list_config_resources.ListConfigResourcesRequest,
                list_config_resources.ListConfigResourcesResponse,
            ),
            _api(
                75,
                describe_topic_partitions.DescribeTopicPartitionsRequest,
                describe_topic_partitions.DescribeTopicPartitionsResponse,
            ),
            # Our own.
            _api(20_000, move_leaders.MoveLeadersRequest, move_leaders.MoveLeadersResponse),
            _api(
                20_001,
                balance_leaders.BalanceLeadersRequest,
                balance_leaders.BalanceLeadersResponse,
            ),
            _api(
                20_002,
                set_broker_state.SetBrokerStateRequest,
                set_broker_state.SetBrokerStateResponse,
            ),
            _api(
                20_003,
                describe_brokers.DescribeBrokersRequest,
                describe_brokers.DescribeBrokersResponse,
            ),
            _api(20_004, set_observers.SetObserversRequest, set_observers.SetObserversResponse),
            _api(
                20_005,
                confirm_leadership.ConfirmLeadershipRequest,
                confirm_leadership.ConfirmLeadershipResponse,
            ),
            _api(
                20_006,
                describe_replicas.DescribeReplicasRequest,
                describe_replicas.DescribeReplicasResponse,
            ),
            _api(
                20_007,
                describe_rebalances.DescribeRebalancesRequest,
                describe_rebalances.DescribeRebalancesResponse,
            ),
        )
    }
)
"""By key: everything that a broker may advertise."""

_BY_REQUEST: Final = {api.request: api for api in APIS.values()}


def api_of(request_type: type[Message]) -> Api:
    """The API that a request belongs to."""
    return _BY_REQUEST[request_type]
