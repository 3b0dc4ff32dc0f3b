"""The coordinator of consumer groups (Kafka's classic protocol) as a pure state machine.

`shard.GroupShard` is the way in, `replay.Replay` the way back from the log, `records` the bytes.
Each request has a module of its own; `rebalance` is what they have in common, and `group` the state
that they share. Nothing here knows the time, the log, or who is connected.
"""
