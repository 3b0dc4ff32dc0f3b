"""The tests that the clients' own projects bring, run against Tidemark.

They say what clients expect better than we could. Nothing is fetched, and nothing of theirs is
copied: each suite is run where it was checked out, with the interpreter that has what it needs.

    python -m tests.clients.peers kafka-python ~/src/kafka-python --python ~/src/venv/bin/python
    python -m tests.clients.peers aiokafka ~/src/aiokafka --python ~/src/venv/bin/python
    python -m tests.clients.peers confluent-kafka-python ~/src/confluent-kafka-python …
    python -m tests.clients.peers librdkafka ~/src/librdkafka

A broker is started for the run. What is printed is the table of `docs/compatibility.md`: each test
passed, failed, or not applicable, with the reason. The interpreter has what a suite needs:
pytest, pytest-timeout, pytest-mock, pytest-asyncio, `py`, and for confluent's what its schema
registry client imports. librdkafka is built before, with its tests:
`./configure && make libs && make -C tests build`.
"""
