"""Who leads how much, and what is wanted of the brokers, as the leader of the metadata knows it.

The other brokers have no series of these, but for the moves that they planned when they led.
"""

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidemark.broker.metrics.balance_counts import BalanceMetrics, BrokerFigures
from tidemark.broker.metrics.families import counters, gauge, gauges


class BalanceCollector(Collector):
    """The families of a `BalanceMetrics`."""

    def __init__(self, balance: BalanceMetrics) -> None:
        self._balance = balance

    def collect(self) -> Iterator[Metric]:
        balance = self._balance
        yield counters(
            "tidemark_leader_moves_planned",
            "Leaders' moves that the balancer has begun, by what they are for above all: "
            "even numbers of leaders, of a topic's leaders, even traffic, preferred leaders, to "
            "drain a broker, or to leave a full disk.",
            "reason",
            {cause.value: count for cause, count in balance.moves.items()},
        )
        yield self._by_broker(
            "tidemark_broker_leaders",
            "Partitions that a broker leads.",
            lambda broker: broker.leaders,
        )
        yield self._by_broker(
            "tidemark_broker_replicas",
            "Replicas that are assigned to a broker.",
            lambda broker: broker.replicas,
        )
        yield self._states()
        if balance.unevenness is not None:
            yield gauge(
                "tidemark_leader_unevenness",
                "The sum that the balancer makes smaller, when it last planned: squared "
                "differences from the mean, in leaders. `tidemark leader balance --explain` "
                "takes it apart.",
                balance.unevenness,
            )
        if balance.misplaced is not None:
            yield gauge(
                "tidemark_leaders_misplaced",
                "Leaders on brokers that are drained or whose disk stays full, when it was last "
                "planned.",
                balance.misplaced,
            )

    def _by_broker(
        self, name: str, help: str, value: Callable[[BrokerFigures], float]
    ) -> GaugeMetricFamily:
        brokers = self._balance.brokers
        return gauges(
            name, help, "broker", {str(node): value(brokers[node]) for node in sorted(brokers)}
        )

    def _states(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "tidemark_broker_state",
            "1 for what is wanted of a broker: `active`, `draining`, `drained` (it leads nothing "
            "any more) or `decommissioning`; 0 while it cannot be heard.",
            labels=["broker", "state"],
        )
        for node, broker in sorted(self._balance.brokers.items()):
            family.add_metric([str(node), broker.state], float(broker.is_alive))
        return family
