"""How leaders are balanced."""

from typing import Final

import attrs

from tidemark.broker.config.fields import setting
from tidemark.partitions.state_machines.config_table import Whole, YesNo, whole_int

_SECTION: Final = "Balancing leaders"


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Balancing:
    leader_balance_enable: bool = setting(
        "leader.balance.enable",
        YesNo(),
        True,
        "Whether leaders are moved until all brokers lead about the same number of partitions "
        "and carry about the same traffic, and leave a broker whose disk stays full. Drained "
        "brokers are emptied in any case. Of all "
        "settings in this section, those of the broker that leads the cluster's metadata are in"
        " force: set all brokers alike.",
        section=_SECTION,
        aliases=("auto.leader.rebalance.enable",),
    )
    leader_balance_interval_ms: int = setting(
        "leader.balance.interval.ms",
        whole_int(100),
        5000,
        "How often the balancer looks at who leads what. While there are leaders to move, it "
        "looks again as soon as some have moved.",
        section=_SECTION,
    )
    leader_balance_moves_max: int = setting(
        "leader.balance.moves.max",
        whole_int(2),
        10,
        "How many leaders may move at a time.",
        section=_SECTION,
    )
    leader_balance_broker_moves_max: int = setting(
        "leader.balance.broker.moves.max",
        whole_int(2),
        5,
        "How many leaders may move at a time to or from one broker.",
        section=_SECTION,
    )
    leader_balance_cool_down_ms: int = setting(
        "leader.balance.cool.down.ms",
        Whole(0),
        60_000,
        "How long a partition is left alone after its leader has changed, for whatever reason, "
        "or a move has failed.",
        section=_SECTION,
    )
    leader_balance_start_grace_ms: int = setting(
        "leader.balance.start.grace.ms",
        Whole(0),
        30_000,
        "How long a broker that has just started is neither given leaders nor relieved of any.",
        section=_SECTION,
    )
    leader_balance_tolerance_percent: int = setting(
        "leader.balance.tolerance.percent",
        whole_int(0, 99),
        5,
        "How wrong a measured share of the traffic may be: leaders move for their traffic only "
        "if it pays even then.",
        section=_SECTION,
    )
    leader_balance_traffic_weight: int = setting(
        "leader.balance.traffic.weight",
        whole_int(0, 1_000_000),
        1,
        "How much an even spread of traffic counts beside an even number of leaders. With 1, "
        "the number comes first and traffic decides between equals; with some hundreds, traffic"
        " comes first; with 0, it does not count.",
        section=_SECTION,
    )
    leader_balance_lag_max_records: int = setting(
        "leader.balance.lag.max.records",
        Whole(0),
        10_000,
        "How many records a replica may be behind its leader when it is chosen to take over. It "
        "catches up before writes are held.",
        section=_SECTION,
    )
