"""The handlers, one module per API, and the table of them.

A broker advertises what is in this table *and* in the protocol's registry: clients adapt to what
is listed, so a row here is a promise that the API works.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tidemark.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_replica_log_dirs,
    api_versions,
    confirm_leadership,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    delete_records,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_replicas,
    describe_topic_partitions,
    describe_transactions,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from tidemark.broker.handlers.passing_on import CHANGES, describe_any_quorum
from tidemark.broker.network.requests import Handler

HANDLERS: Final[Mapping[int, Handler]] = MappingProxyType(
    {
        0: produce.handle,
        1: fetch.handle,
        2: list_offsets.handle,
        3: metadata.handle,
        8: offset_commit.handle,
        9: offset_fetch.handle,
        10: find_coordinator.handle,
        11: join_group.handle,
        12: heartbeat.handle,
        13: leave_group.handle,
        14: sync_group.handle,
        15: describe_groups.handle,
        16: list_groups.handle,
        17: sasl_handshake.handle,
        18: api_versions.handle,
        21: delete_records.handle,
        22: init_producer_id.handle,
        23: offset_for_leader_epoch.handle,
        27: write_txn_markers.handle,
        24: add_partitions_to_txn.handle,
        25: add_offsets_to_txn.handle,
        26: end_txn.handle,
        28: txn_offset_commit.handle,
        32: describe_configs.handle,
        34: alter_replica_log_dirs.handle,
        35: describe_log_dirs.handle,
        36: sasl_authenticate.handle,
        42: delete_groups.handle,
        47: offset_delete.handle,
        48: describe_client_quotas.handle,
        60: describe_cluster.handle,
        74: list_config_resources.handle,
        75: describe_topic_partitions.handle,
        65: describe_transactions.handle,
        66: list_transactions.handle,
        68: consumer_group_heartbeat.handle,
        69: consumer_group_describe.handle,
        **{key: change.answer for key, change in CHANGES.items()},
        55: describe_any_quorum,
        20_005: confirm_leadership.handle,
        20_006: describe_replicas.handle,
    }
)
