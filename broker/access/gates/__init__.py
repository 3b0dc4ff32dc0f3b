"""The gates, one for each API that clients may ask for.

What each of them asks for is what Kafka's authorizer is asked. An API without a row is not served
where there is an authorizer.
"""

from collections.abc import Mapping
from typing import Final

from tidemark.broker.access.gate import Gate, open_to_all
from tidemark.broker.access.gates import cluster, configs, groups, records, topics, transactions
from tidemark.broker.access.gates.offsets import offset_fetch
from tidemark.protocol.acls import Operation

GATES: Final[Mapping[int, Gate]] = {
    0: records.produce,
    1: records.fetch,
    2: records.list_offsets,
    3: topics.metadata,
    8: groups.offset_commit,
    9: offset_fetch,
    10: groups.find_coordinator,
    11: groups.on_group(Operation.READ),  # JoinGroup
    12: groups.on_group(Operation.READ),  # Heartbeat
    13: groups.on_group(Operation.READ),  # LeaveGroup
    14: groups.on_group(Operation.READ),  # SyncGroup
    15: groups.describe_groups,
    16: groups.list_groups,
    17: open_to_all,  # SaslHandshake
    18: open_to_all,  # ApiVersions
    19: topics.create_topics,
    20: topics.delete_topics,
    21: records.delete_records,
    22: transactions.init_producer_id,
    23: records.offset_for_leader_epoch,
    24: transactions.add_partitions_to_txn,
    25: transactions.add_offsets_to_txn,
    26: transactions.on_transactional_id(Operation.WRITE),  # EndTxn
    27: cluster.write_txn_markers,
    28: transactions.txn_offset_commit,
    29: cluster.on_cluster(Operation.DESCRIBE),  # DescribeAcls
    30: cluster.on_cluster(Operation.ALTER),  # CreateAcls
    31: cluster.on_cluster(Operation.ALTER),  # DeleteAcls
    32: configs.describe_configs,
    33: configs.alter_configs,
    34: cluster.alter_replica_log_dirs,
    35: cluster.on_cluster(Operation.DESCRIBE),  # DescribeLogDirs
    36: open_to_all,  # SaslAuthenticate
    37: topics.create_partitions,
    42: groups.delete_groups,
    43: cluster.on_cluster(Operation.ALTER),  # ElectLeaders
    44: configs.incremental_alter_configs,
    45: cluster.on_cluster(Operation.ALTER),  # AlterPartitionReassignments
    46: cluster.on_cluster(Operation.DESCRIBE),  # ListPartitionReassignments
    47: groups.offset_delete,
    48: cluster.on_cluster(Operation.DESCRIBE_CONFIGS),  # DescribeClientQuotas
    49: cluster.on_cluster(Operation.ALTER_CONFIGS),  # AlterClientQuotas
    50: cluster.describe_user_scram_credentials,
    51: cluster.on_cluster(Operation.ALTER),  # AlterUserScramCredentials
    55: cluster.on_cluster(Operation.DESCRIBE),  # DescribeQuorum
    60: open_to_all,  # DescribeCluster: what every client has to know
    61: records.describe_producers,
    65: transactions.describe_transactions,
    66: transactions.list_transactions,
    68: groups.consumer_group_heartbeat,
    69: groups.consumer_group_describe,
    74: cluster.on_cluster(Operation.DESCRIBE_CONFIGS),  # ListConfigResources
    75: topics.describe_topic_partitions,
    20_000: cluster.on_cluster(Operation.ALTER),  # MoveLeaders
    20_001: cluster.balance_leaders,
    20_002: cluster.on_cluster(Operation.ALTER),  # SetBrokerState
    20_003: cluster.on_cluster(Operation.DESCRIBE),  # DescribeBrokers
    20_004: cluster.on_cluster(Operation.ALTER),  # SetObservers
    20_005: records.confirm_leadership,
    20_006: topics.describe_replicas,
    20_007: groups.describe_rebalances,
}
"""By API key."""
