"""Quotas as the cluster has them, and what is metered by them."""

from tests.broker.fake_cluster import FollowedCluster
from tidemark.broker.config import Address
from tidemark.broker.metrics.quota_counts import QuotaMetrics
from tidemark.broker.network.requests import Session
from tidemark.broker.quotas.quotas import Meter, Quotas
from tidemark.partitions.state_machines.client_quotas import QuotaChange, entity_of
from tidemark.partitions.state_machines.cluster_commands import AlterQuotas


class Cluster(FollowedCluster):
    def alter(self, *parts: tuple[str, str | None], **values: float | None) -> None:
        change = QuotaChange(entity=entity_of(parts), values=values)
        self.apply(AlterQuotas(at_version=self.state.version, changes=(change,)))


def quotas_of(cluster: Cluster) -> Quotas:
    return Quotas(cluster, QuotaMetrics(), burst_seconds=10, request_throttle_max_seconds=1)


def session(user: str | None = None) -> Session:
    return Session(
        connection_id=1, client_host="here", listener=Address("127.0.0.1", 9092), user=user
    )


def meter(quotas: Quotas, client_id: str, user: str | None = None) -> Meter:
    found = quotas.meter(session(user), client_id)
    assert found is not None
    return found
