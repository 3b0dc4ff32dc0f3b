"""What a broker makes of the quotas in the metadata: who is measured by what, and with whom."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.broker.nodes import open_node
from tests.broker.quotas.metering import Cluster, meter, quotas_of, session
from tidemark.broker.metrics.quota_counts import Throttled
from tidemark.broker.quotas import quotas as module
from tidemark.broker.quotas.charge import Charge
from tidemark.broker.quotas.quotas import Quotas
from tidemark.partitions.state_machines.client_quotas import QuotaChange, entity_of
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import AlterQuotas
from tidemark.protocol.frames import ApiCodec
from tidemark.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tidemark.protocol.messages.heartbeat import HeartbeatResponse
from tidemark.protocol.messages.produce import ProduceResponse
from tidemark.protocol.registry import APIS


async def test_without_quotas_nobody_is_looked_at() -> None:
    cluster = Cluster()
    quotas = quotas_of(cluster)
    were_on = [quotas.is_on]
    cluster.alter(("user", "ada"), producer_byte_rate=1)
    assert quotas.meter(session(), "any") is None
    were_on.append(quotas.is_on)
    cluster.alter(("user", "ada"), producer_byte_rate=None)
    assert [*were_on, quotas.is_on] == [False, True, False]


async def test_a_default_is_for_each_client_by_itself_and_a_users_is_shared() -> None:
    cluster = Cluster()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", None), producer_byte_rate=1)
    assert meter(quotas, "one").produce is not meter(quotas, "two").produce
    cluster.alter(("user", "ada"), producer_byte_rate=1)
    assert meter(quotas, "one", "ada").produce is meter(quotas, "two", "ada").produce


async def test_a_client_that_has_not_authenticated_is_anonymous() -> None:
    cluster = Cluster()
    quotas = quotas_of(cluster)
    cluster.alter(("user", "ANONYMOUS"), consumer_byte_rate=1)
    assert meter(quotas, "one").fetch is not None


async def test_what_was_used_up_is_kept_when_somebody_elses_quota_changes() -> None:
    cluster = Cluster()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", "one"), producer_byte_rate=1)
    before = meter(quotas, "one").produce
    cluster.alter(("client-id", "two"), producer_byte_rate=1)
    assert meter(quotas, "one").produce is before
    cluster.alter(("client-id", "one"), producer_byte_rate=2)
    after = meter(quotas, "one").produce
    assert after is not None
    assert after.rate == 2


async def test_a_snapshot_takes_the_place_of_what_was_known() -> None:
    cluster = Cluster()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", "one"), producer_byte_rate=1)
    cluster.state = ClusterState()
    for callback in cluster.follow:
        callback()
    assert not quotas.is_on


@pytest.mark.parametrize(
    ("limit", "limit_value", "repeats", "buckets_max"),
    [("CLIENTS_MAX", 10, 1, 20), ("NAMES_CHARS_MAX", 1_000, 150, 15)],
    ids=["new", "long"],
)
async def test_the_names_of_clients_fill_no_memory(
    monkeypatch: pytest.MonkeyPatch, limit: str, limit_value: int, repeats: int, buckets_max: int
) -> None:
    monkeypatch.setattr(module, limit, limit_value)
    cluster = Cluster()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", None), producer_byte_rate=1)
    for number in range(100):
        bucket = meter(quotas, str(number) * repeats).produce
        assert bucket is not None
        bucket.take(100, trio.current_time())
    assert 1 <= len(quotas._meters) <= 10
    assert 1 <= len(quotas._buckets) <= buckets_max


async def test_nor_do_they_where_quotas_change_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLIENTS_MAX", 10)
    cluster = Cluster()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", None), producer_byte_rate=1)
    for number in range(100):
        meter(quotas, str(number))
        if number % 5 == 0:
            cluster.alter(("client-id", "other"), producer_byte_rate=number + 1)
    assert len(quotas._buckets) <= 20


def charge(
    quotas: Quotas, api_key: int, request_bytes: int, held: list[float], *, version: int
) -> Charge:
    client = session()
    client.hold_back = held.append
    found = quotas.meter(client, "one")
    assert found is not None
    return Charge(quotas, found, client, ApiCodec(APIS[api_key], version), request_bytes)


async def test_a_producer_over_its_quota_is_told_so_and_held_back() -> None:
    cluster, held = Cluster(), list[float]()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", "one"), producer_byte_rate=100)
    within = charge(quotas, 0, 1_000, held, version=9).settle(ProduceResponse(responses=[]))
    assert (within.throttle_time_ms, held) == (0, [])
    over = charge(quotas, 0, 50, held, version=9).settle(ProduceResponse(responses=[]))
    assert over.throttle_time_ms == pytest.approx(500, abs=20)
    assert held == [pytest.approx(0.5, abs=0.02)]
    charge(quotas, 0, 50, held, version=9).settle_unanswered()
    assert held[1] == pytest.approx(1, abs=0.02)
    assert quotas.metrics.throttled[Throttled.PRODUCE].value == 2


async def test_a_debt_of_a_lifetime_is_answered_with_the_longest_time_there_is() -> None:
    cluster, held = Cluster(), list[float]()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", "one"), producer_byte_rate=1)
    over = charge(quotas, 0, 5_000_000, held, version=9).settle(ProduceResponse(responses=[]))
    ApiCodec(APIS[0], 9).encode_response(over, 1)
    assert over.throttle_time_ms == 2**31 - 1
    charge(quotas, 0, 50, held, version=9).settle_unanswered()
    assert held == [pytest.approx(2_147_483.647)] * 2


async def test_a_fetch_costs_what_it_brings() -> None:
    cluster, held = Cluster(), list[float]()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", "one"), consumer_byte_rate=100)
    answer = PartitionData(partition_index=0, high_watermark=1, records=b"r" * 1_100)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[answer])])
    over = charge(quotas, 1, 10_000, held, version=11).settle(response)
    assert over.throttle_time_ms == pytest.approx(1_000, abs=20)
    assert quotas.is_fetched_out(session(), "one")
    assert not quotas.is_fetched_out(session(), "two")
    assert quotas.fetch_bytes_max(session(), "one", 5_000) == 1_000
    assert quotas.fetch_bytes_max(session(), "two", 5_000) == 5_000


async def test_the_brokers_time_is_counted_and_nobody_waits_longer_than_a_window() -> None:
    cluster, held = Cluster(), list[float]()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", "one"), request_percentage=1)
    one = charge(quotas, 12, 10, held, version=4)
    one.busy_seconds = 10
    assert one.settle(HeartbeatResponse()).throttle_time_ms == 1_000
    assert held == [1]


async def test_a_response_that_cannot_say_so_stays_as_it_is() -> None:
    cluster, held = Cluster(), list[float]()
    quotas = quotas_of(cluster)
    cluster.alter(("client-id", "one"), request_percentage=1)
    one = charge(quotas, 12, 10, held, version=0)
    one.busy_seconds = 10
    assert one.settle(HeartbeatResponse()).throttle_time_ms == 0
    assert held == [1]


async def test_a_node_follows_the_metadata_also_after_a_restart(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    del autojump_clock
    change = QuotaChange(entity=entity_of([("client-id", "one")]), values={"consumer_byte_rate": 5})
    async with open_node(tmp_path) as node:
        await node.cluster.propose(
            lambda state: AlterQuotas(at_version=state.version, changes=(change,))
        )
        assert node.quotas.is_on
    async with open_node(tmp_path) as node:
        assert node.quotas.is_on
        assert node.quotas.meter(session(), "one") is not None
