"""For tests, yours and ours: brokers inside the test process, and the doubles of our own seams.

`open_cluster` is for trio, `open_blocking_cluster` for everything else, and pytest gets the
fixtures `tidemark` and `tidemark_session`.
"""

from tidemark.testing.blocking import BlockingCluster, open_blocking_cluster
from tidemark.testing.cluster import Cluster, NotInTime, open_cluster
from tidemark.testing.process import BrokerProcess, open_broker_process

__all__ = [
    "BlockingCluster",
    "BrokerProcess",
    "Cluster",
    "NotInTime",
    "open_blocking_cluster",
    "open_broker_process",
    "open_cluster",
]
