"""Transactions and groups to which nothing happens."""

from tidemark.testing.simulator.knobs import Knobs

CALM = Knobs(
    seconds=3.0,
    groups=6,
    producers=1,
    consumers=1,
    send_interval=0.1,
    fault_interval=0,
    writers=2,
    transformers=2,
    members=2,
)
