"""Members of groups: those who read words and commit, those who copy them in transactions.

They come, go, hang, take each other's transactional ids, and give transactions up. Neither group
may leave out a word, nor go back behind a commit; and each word has one copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

import trio

from tidemark.client import Client, Consumer, ConsumerRecord, Producer
from tidemark.client.delivery import DeliveryFuture
from tidemark.client.options import ConsumerOptions
from tidemark.protocol.errors import TidemarkError
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import Outcome, Send
from tidemark.testing.checkers.transactions import Commit, Fetched, Transaction
from tidemark.testing.shell.clients import COPIES, PARTITIONS, WORDS, Clients

READERS: Final = "readers"
COPIERS: Final = "copiers"
SETTINGS: Final = {"group.min.session.timeout.ms": "1000"}
"""What brokers need for it."""
_ASSIGNORS: Final = (("range",), ("roundrobin", "range"), ("cooperative-sticky",))
_SESSION_SECONDS: Final = 2.0
_TRANSACTION_SECONDS: Final = 2.0
_HANGS: Final = (0.0, 0.0, 0.01, 0.1, 0.5, 3.0)
"""How long a member does nothing with what it has read; the last is too long for a transaction."""
_GIVEN_UP: Final = 0.1
_TAKEN_OVER: Final = 0.2
_ASK_SECONDS: Final = 0.3


class _GivenUp(TidemarkError):
    """A transaction that its producer does not want any more."""


class Members:
    """The two groups of one run, and what they saw."""

    def __init__(self, clients: Clients, rng: Random) -> None:
        self.polled = defaultdict[TopicPartition, set[Offset]](set)
        """What members of `READERS` got."""
        self.commits = list[Commit]()
        self.fetched = list[Fetched]()
        self.transactions = list[Transaction]()
        self.ends: dict[TopicPartition, Offset] | None = None
        """Of the words, once nobody sends any more."""
        self._clients = clients
        self._groups = {
            group: ConsumerOptions(
                group=group,
                isolation="read_committed",
                auto_commit_seconds=None,
                assignors=rng.choice(_ASSIGNORS),
                session_timeout_seconds=_SESSION_SECONDS,
                rebalance_timeout_seconds=_SESSION_SECONDS,
                heartbeat_seconds=_SESSION_SECONDS / 5,
            )
            for group in (READERS, COPIERS)
        }
        self._is_over = False

    # Reading

    async def read(self, rng: Random) -> None:
        while not self._is_over:
            await self._clients.live("member", rng, partial(self._read, rng))

    async def _read(self, rng: Random, client: Client, _: str) -> None:
        async with client.consumer(WORDS, **self._groups[READERS]) as consumer:
            while not self._is_over:
                records = await consumer.fetch()
                where = _where(records)
                self.polled[where].update(Offset(record.offset) for record in records)
                await trio.sleep(rng.choice(_HANGS))
                end = Offset(records[-1].offset + 1)
                await consumer.commit({where: end})
                self.commits.append(Commit(READERS, where, end, trio.current_time()))

    # Copying

    async def copy(self, own_id: str, other_id: str, rng: Random) -> None:
        """As a service that is restarted now and then, by mistake sometimes under another's id."""
        while not self._is_over:
            taken = other_id if rng.random() < _TAKEN_OVER else own_id
            await self._clients.live("copier", rng, partial(self._copy, taken, rng))

    async def _copy(self, transactional_id: str, rng: Random, client: Client, name: str) -> None:
        async with (
            client.consumer(WORDS, **self._groups[COPIERS]) as consumer,
            client.producer(
                transactional_id=transactional_id,
                transaction_timeout_seconds=_TRANSACTION_SECONDS,
            ) as producer,
        ):
            while not self._is_over:
                copying = _Copying(name, producer, consumer, rng)
                records = await consumer.fetch()
                self.transactions.append(copying.transaction)
                await copying.run(records)

    # Looking on

    async def look_on(self) -> None:
        """Ask how far the groups are, until they have come to the ends of all partitions."""
        while not self._is_over:
            await self._clients.as_client("onlooker", self._look_on)

    async def _look_on(self, client: Client, _: str) -> None:
        while not self._is_over:
            is_done = self.ends is not None
            for group in (READERS, COPIERS):
                started = trio.current_time()
                told = await client.admin.list_group_offsets(group)
                self.fetched += [
                    Fetched(group, where, commit.offset, started) for where, commit in told.items()
                ]
                for where, end in (self.ends or {}).items():
                    is_done &= not end or (where in told and told[where].offset >= end)
            self._is_over = is_done
            await trio.sleep(_ASK_SECONDS)

    async def note_ends(self) -> None:
        """Of the words: as soon as the groups have come so far, they are done."""

        async def ask(client: Client, _: str) -> None:
            where = [TopicPartition(WORDS, partition) for partition in range(PARTITIONS)]
            self.ends = await client.admin.end_offsets(where)

        while not await self._clients.as_client("onlooker", ask):
            pass


class _Copying:
    """One transaction: some words are copied, and committed as read."""

    def __init__(self, name: str, producer: Producer, consumer: Consumer, rng: Random) -> None:
        self.transaction = Transaction(client=name, started=trio.current_time())
        self._producer = producer
        self._consumer = consumer
        self._rng = rng
        self._deliveries = list[DeliveryFuture]()

    async def run(self, records: Sequence[ConsumerRecord]) -> None:
        transaction = self.transaction
        try:
            async with self._producer.transaction():
                for record in records:
                    await self._copy(record)
                before, after = self._rng.sample((0.0, self._rng.choice(_HANGS)), 2)
                await trio.sleep(before)
                await self._commit(records)
                await trio.sleep(after)
                if self._rng.random() < _GIVEN_UP:
                    raise _GivenUp
                transaction.outcome = Outcome.INFO
            transaction.outcome = Outcome.OK
            stored = [delivery.result() for delivery in self._deliveries]
            transaction.sends = [
                replace(send, offsets=(at.offset,)) for send, at in zip(transaction.sends, stored)
            ]
        finally:
            transaction.ended = trio.current_time()

    async def _copy(self, record: ConsumerRecord) -> None:
        """Under a value that says of what, and that no other copy has."""
        source = TopicPartition(record.topic, record.partition)
        where = TopicPartition(COPIES, self._rng.randrange(PARTITIONS))
        value = f"{source}@{record.offset}#{self.transaction.client}".encode()
        now = trio.current_time()
        self.transaction.sends.append(
            Send(
                client=self.transaction.client,
                partition=where,
                values=(value,),
                started=now,
                ended=now,
                outcome=Outcome.INFO,
            )
        )
        self._deliveries.append(await self._producer.send(COPIES, value, partition=where.partition))

    async def _commit(self, records: Sequence[ConsumerRecord]) -> None:
        where, end = _where(records), Offset(records[-1].offset + 1)
        membership = self._consumer.group_membership
        await self._producer.send_offsets_to_transaction({where: end}, membership)
        # What it is worth is what the transaction is.
        self.transaction.commits.append(Commit(COPIERS, where, end, trio.current_time()))


def _where(records: Sequence[ConsumerRecord]) -> TopicPartition:
    return TopicPartition(records[0].topic, records[0].partition)
