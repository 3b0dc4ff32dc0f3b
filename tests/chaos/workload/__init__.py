"""What clients do meanwhile: librdkafka's producers, consumers and groups, and their history.

A `Stream` is a topic with a promise of its own, with the clients that hold it to it; `Workload` is
all of them. Everything is written down as plain values, for the judge.
"""
