"""Members that go from one protocol to the other while they read."""

from tidemark.testing.simulator.knobs import Knobs

ROLLING = Knobs(
    seconds=5.0,
    groups=11,
    producers=1,
    consumers=1,
    send_interval=0.1,
    fault_interval=0,
    members=3,
    migrating=1.2,
)
