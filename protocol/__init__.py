"""Bytes to values and back, pure: no sockets, no files, no clock.

`types` and `errors` are what every room speaks of. `messages/` declares each message once,
`schema/` compiles the declarations, `registry` says which API is spoken in which versions, `codec`
and `frames` are the way in and out. `records/` knows the format of record batches. What begins
with `peer_` is the same for what brokers say to each other.
"""
