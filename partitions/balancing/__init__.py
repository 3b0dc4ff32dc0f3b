"""Who should lead what, and which replica should move where: decided from a snapshot, as values.

`leaders.plan` moves leaders for evenness, `preferred` to their first replica, `draining` away from
a broker; `replicas` moves replicas off a broker and onto another. Nothing here moves anything, asks
anybody, or knows the time: a plan comes from a `Snapshot`, the `Settings` and a seeded random
generator, and says why it does what it does, and why not the rest.
"""
