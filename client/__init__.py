"""The client library: `open_client` and what it gives. It speaks to any Kafka broker.

```python
async with open_client("127.0.0.1:9092") as client:
    await client.admin.create_topic("greetings", partitions=3)
    async with client.producer() as producer:
        delivery = await producer.send("greetings", b"hello", key=b"world")
        print(await delivery.wait())
    async with client.consumer("greetings", until_end=True) as consumer:
        async for record in consumer:
            print(record.key, record.value)
```

Errors: `RequestError` carries one of Kafka's codes, `OSError` is the network. The same for code
without trio is in `tidemark.client.blocking`. `docs/client.md` says more.
"""

from tidemark.client.acl_descriptions import Acl, AclFilter
from tidemark.client.admin import Admin
from tidemark.client.balance_descriptions import (
    BalancedBroker,
    BalancePlan,
    BrokerStatus,
    PlannedMove,
    RefusedMove,
    StateChange,
    UnevennessTerm,
)
from tidemark.client.client import Client, open_client
from tidemark.client.consumer import Consumer
from tidemark.client.delivery import DeliveryFuture
from tidemark.client.descriptions import (
    ApiRange,
    BrokerDescription,
    ClientQuotas,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConfirmedEnd,
    CreatedTopic,
    Default,
    GroupDescription,
    GroupListing,
    ListedOffset,
    MemberDescription,
    PartitionDescription,
    QuorumDescription,
    QuorumReplica,
    RebalanceDescription,
    TopicDescription,
    UserDescription,
)
from tidemark.client.leader_descriptions import ElectedLeader, MovedLeader
from tidemark.client.offsets import (
    AtOffset,
    AtTime,
    BeforeEnd,
    Beginning,
    End,
    Isolation,
    MaxTime,
    OffsetSpec,
    Start,
)
from tidemark.client.producer import Producer
from tidemark.client.producer_descriptions import ProducerDescription
from tidemark.client.read_levels import ReadLevel
from tidemark.client.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    ConsumerRecord,
    FetchedBatches,
    RecordMetadata,
)
from tidemark.client.replica_descriptions import (
    CompactionProgress,
    LogDirDescription,
    OngoingReassignment,
    PartitionReplicas,
    ReassignmentProgress,
    ReplicaChange,
    ReplicaRole,
    ReplicaSize,
    ReplicaStanding,
)
from tidemark.client.security import Sasl, Tls, UntrustedBroker
from tidemark.client.settings import ClientSettings
from tidemark.client.transaction_descriptions import (
    HangingTransaction,
    TransactionDescription,
    TransactionListing,
)
from tidemark.protocol.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from tidemark.protocol.configs import ConfigSource
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.types import TopicPartition

__all__ = [
    "CLUSTER_NAME",
    "CREATE_TIME",
    "LOG_APPEND_TIME",
    "Acl",
    "AclFilter",
    "Admin",
    "ApiRange",
    "AtOffset",
    "AtTime",
    "BalancePlan",
    "BalancedBroker",
    "BeforeEnd",
    "Beginning",
    "BrokerDescription",
    "BrokerStatus",
    "Client",
    "ClientQuotas",
    "ClientSettings",
    "ClusterDescription",
    "CommittedOffset",
    "CompactionProgress",
    "Compression",
    "ConfigEntry",
    "ConfigSource",
    "ConfirmedEnd",
    "Consumer",
    "ConsumerRecord",
    "CreatedTopic",
    "Default",
    "DeliveryFuture",
    "ElectedLeader",
    "End",
    "ErrorCode",
    "FetchedBatches",
    "GroupDescription",
    "GroupListing",
    "HangingTransaction",
    "Isolation",
    "ListedOffset",
    "LogDirDescription",
    "MaxTime",
    "MemberDescription",
    "MovedLeader",
    "OffsetSpec",
    "OngoingReassignment",
    "Operation",
    "PartitionDescription",
    "PartitionReplicas",
    "PatternType",
    "Permission",
    "PlannedMove",
    "Producer",
    "ProducerDescription",
    "QuorumDescription",
    "QuorumReplica",
    "ReadLevel",
    "ReassignmentProgress",
    "RebalanceDescription",
    "RecordMetadata",
    "RefusedMove",
    "ReplicaChange",
    "ReplicaRole",
    "ReplicaSize",
    "ReplicaStanding",
    "RequestError",
    "ResourceType",
    "Sasl",
    "Start",
    "StateChange",
    "Tls",
    "TopicDescription",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
    "UnevennessTerm",
    "UntrustedBroker",
    "UserDescription",
    "open_client",
]
