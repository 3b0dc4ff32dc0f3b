"""Clusters and settings of any kind, for the balancer."""

from hypothesis import strategies as st

from tests.partitions.balancing.clusters import brokers, group, snapshot
from tidemark.partitions.balancing.settings import Settings, Weights
from tidemark.partitions.balancing.snapshot import Snapshot

SEEDS = st.integers(0, 2**32)
RATES = st.sampled_from([0.0, 1.0, 1e5, 2e5, 1e6, 3e6, 4e7]) | st.floats(0, 1e8)


@st.composite
def healthy_cluster(draw: st.DrawFn, *, full: bool = False) -> Snapshot:
    """All brokers well, all replicas in sync; `full`: on every broker."""
    count = draw(st.integers(2, 5))
    nodes = list(range(1, count + 1))
    groups = []
    for topic, size in enumerate(draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))):
        for at in range(size):
            held = count if full else draw(st.integers(1, count))
            replicas = draw(st.permutations(nodes))[:held]
            leader = draw(st.sampled_from(replicas))
            groups.append(group(f"t{topic}-{at}", replicas, leader, rate=draw(RATES)))
    return snapshot(brokers(count), groups)


ANY_SETTINGS = st.builds(
    Settings,
    weights=st.builds(
        Weights,
        count=st.sampled_from([1.0, 0.0, 0.3]),
        topic=st.sampled_from([0.5, 0.0, 2.0]),
        rate=st.sampled_from([1.0, 0.0, 500.0]),
        preferred=st.sampled_from([0.5, 10.0]),
    ),
    hysteresis=st.sampled_from([0.05, 0.0, 0.5]),
    full_patience_ms=st.sampled_from([10_000, 0, None]),
    moves_in_flight_max=st.sampled_from([2, 3, 10, 1000]),
    broker_moves_in_flight_max=st.sampled_from([2, 5, 1000]),
)
