"""The coordinator of transactions on this broker: pure shards, driven by requests, the log and the
clock, and markers sent until each partition has its own."""
