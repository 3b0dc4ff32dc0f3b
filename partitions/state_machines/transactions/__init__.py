"""The coordinator of transactions as a pure state machine.

`shard.TransactionShard` is the way in, `records` the way to the log and back. A transaction is a
value (`transaction`), each change of one a function (`transitions`): nothing here knows the time,
the log, or who is connected. Why it is built so: docs/decisions/0008-transactions.md.
"""
