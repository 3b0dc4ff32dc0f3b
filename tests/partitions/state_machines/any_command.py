"""Any command that a cluster's metadata may be given, the wrong ones too."""

from uuid import UUID

from hypothesis import strategies as st

from tests.partitions.state_machines.access.changes_of_users import CHANGES as USER_CHANGES
from tests.partitions.state_machines.access.rules_of_kafka import ACLS
from tests.partitions.state_machines.clusters import on
from tidemark.partitions.state_machines.client_quotas import QuotaChange, QuotaKey, entity_of
from tidemark.partitions.state_machines.cluster_commands import (
    AllocateProducerIds,
    AlterAcls,
    AlterQuotas,
    AlterUsers,
    Command,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    EndMoves,
    FinishReassignments,
    FoundCluster,
    MoveLeaders,
    ReassignPartitions,
    RegisterBroker,
    SetBrokerConfigs,
    SetBrokerState,
    SetGroupConfigs,
    SetObservers,
    SetTopicConfigs,
    UnregisterBroker,
)
from tidemark.partitions.state_machines.cluster_values import (
    BrokerAddress,
    BrokerState,
    LeaderMove,
    MoveOutcome,
    Reassignment,
)
from tidemark.protocol.types import NodeId

VERSIONS = st.integers(0, 8)
IDS = st.integers(0, 4).map(lambda number: UUID(int=number))
CONFIGS = st.dictionaries(
    st.sampled_from(["retention.ms", "flush", "colour"]),
    st.sampled_from(["1", "os"]),
    max_size=2,
)
ASSIGNMENTS = st.lists(st.lists(st.integers(0, 2), max_size=2), max_size=3).map(
    lambda lists: tuple(on(*each) for each in lists)
)
ADDRESSES = st.builds(BrokerAddress, st.sampled_from(["a", "::1"]), st.integers(0, 9))
NODES = st.integers(0, 2).map(NodeId)
PARTITIONS = st.integers(0, 2)
REPLICAS = st.lists(NODES, max_size=3).map(lambda nodes: on(*nodes))
REASSIGNMENTS = st.lists(
    st.builds(Reassignment, topic_id=IDS, partition=PARTITIONS, replicas=st.none() | REPLICAS),
    max_size=2,
).map(tuple)
ENTITIES = st.sampled_from(
    [
        entity_of([("user", "ada")]),
        entity_of([("user", None)]),
        entity_of([("client-id", "ledger"), ("user", "ada")]),
        entity_of([("client-id", None)]),
    ]
)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        MoveLeaders,
        at_version=VERSIONS,
        moves=st.lists(
            st.builds(
                LeaderMove,
                topic_id=IDS,
                partition=PARTITIONS,
                target=NODES,
                deadline_ms=st.integers(0, 1),
                reason=st.just("because"),
            ),
            max_size=2,
        ).map(tuple),
    ),
    st.builds(
        EndMoves,
        at_version=VERSIONS,
        outcomes=st.lists(
            st.builds(
                MoveOutcome,
                topic_id=IDS,
                partition=PARTITIONS,
                target=NODES,
                deadline_ms=st.integers(0, 1),
                failure=st.none() | st.just("too late"),
            ),
            max_size=2,
        ).map(tuple),
    ),
    st.builds(ReassignPartitions, at_version=VERSIONS, reassignments=REASSIGNMENTS),
    st.builds(FinishReassignments, at_version=VERSIONS, reassignments=REASSIGNMENTS),
    st.builds(
        SetObservers, at_version=VERSIONS, topic_id=IDS, partition=PARTITIONS, replicas=REPLICAS
    ),
    st.builds(
        SetBrokerState, at_version=VERSIONS, node_id=NODES, state=st.sampled_from(BrokerState)
    ),
    st.builds(
        AlterQuotas,
        at_version=VERSIONS,
        changes=st.lists(
            st.builds(
                QuotaChange,
                entity=ENTITIES,
                values=st.dictionaries(
                    st.sampled_from([*map(str, QuotaKey), "no_such_quota"]),
                    st.sampled_from([None, 1.0, 2.5, -1.0]),
                    max_size=2,
                ),
            ),
            max_size=2,
        ).map(tuple),
    ),
    st.builds(
        AlterAcls,
        at_version=VERSIONS,
        added=st.lists(ACLS, max_size=3).map(tuple),
        removed=st.lists(ACLS, max_size=1).map(tuple),
    ),
    st.builds(
        AlterUsers,
        at_version=VERSIONS,
        credentials=st.lists(USER_CHANGES, max_size=2).map(tuple),
        salt_secret=st.just(b"\1"),
    ),
    st.builds(SetBrokerConfigs, at_version=VERSIONS, node_id=st.none() | NODES, configs=CONFIGS),
    st.builds(
        SetGroupConfigs,
        at_version=VERSIONS,
        group_id=st.sampled_from(["g", "h"]),
        configs=st.dictionaries(
            st.sampled_from(["consumer.session.timeout.ms", "colour"]),
            st.sampled_from(["1", "0"]),
            max_size=2,
        ),
    ),
    st.builds(FoundCluster, at_version=VERSIONS, cluster_id=st.text(max_size=3)),
    st.builds(
        CreateTopic,
        at_version=VERSIONS,
        name=st.sampled_from(["a", "a.b", "a_b", "a-b", "/"]),
        id=IDS,
        assignments=ASSIGNMENTS,
        configs=CONFIGS,
        created_ms=st.integers(0, 9),
    ),
    st.builds(DeleteTopic, at_version=VERSIONS, id=IDS),
    st.builds(SetTopicConfigs, at_version=VERSIONS, id=IDS, configs=CONFIGS),
    st.builds(CreatePartitions, at_version=VERSIONS, id=IDS, assignments=ASSIGNMENTS),
    st.builds(
        RegisterBroker,
        at_version=VERSIONS,
        node_id=NODES,
        directory_id=IDS,
        incarnation=st.integers(1, 2),
        listeners=st.dictionaries(st.sampled_from("AB"), ADDRESSES, max_size=2),
        peer=ADDRESSES,
        rack=st.sampled_from([None, "r"]),
    ),
    st.builds(UnregisterBroker, at_version=VERSIONS, node_id=NODES),
    st.builds(
        AllocateProducerIds,
        at_version=VERSIONS,
        node_id=st.just(NodeId(1)),
        count=st.integers(0, 5),
    ),
)
