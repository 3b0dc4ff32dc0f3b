"""Small scopes, exhaustively: every order in which a few things can happen to a few replicas.

Random schedules find what is likely; here nothing is left to likelihood, and in return everything
is small: two or three replicas of the production core (`partitions/raft/`), a handful of elections,
records and crashes. `python -m tests.scopes` goes through the large scopes and says how many states
they have; `python -m tests.scopes --mutations` breaks the core's rules one by one and says which
scope notices. The small ones are a part of the test suite.
"""
