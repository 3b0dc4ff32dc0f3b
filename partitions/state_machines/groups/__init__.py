"""The coordinator of consumer groups as a pure state machine: Kafka's classic protocol, and in
`consumer` the one of KIP-848.

`shard.GroupShard` is the way in, `replay.Replay` the way back from the log, `records` the bytes.
Each request has a module of its own; `rebalance` is what they have in common, and `group` the state
that they share. Nothing here knows the time, the log, or who is connected.
"""
