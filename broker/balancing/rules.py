"""The balancer's settings, from the broker's."""

from __future__ import annotations

from tidemark.broker.config import BrokerSettings
from tidemark.partitions.balancing.settings import Settings, Weights


def rules_of(settings: BrokerSettings) -> Settings:
    return Settings(
        weights=Weights(rate=settings.leader_balance_traffic_weight),
        hysteresis=settings.leader_balance_tolerance_percent / 100,
        cool_down_ms=settings.leader_balance_cool_down_ms,
        start_grace_ms=settings.leader_balance_start_grace_ms,
        moves_in_flight_max=settings.leader_balance_moves_max,
        broker_moves_in_flight_max=settings.leader_balance_broker_moves_max,
        lag_records_max=settings.leader_balance_lag_max_records,
    )
