"""Where a broker takes what clients ask of a leader or coordinator: the handlers' decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, assert_never, cast

from tidemark.broker.network.requests import NotNow, Pending
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.verifying import ADDS_SINCE, Transactional
from tidemark.partitions.replication.outbox import GroupChange
from tidemark.partitions.state_machines.groups.consumer.member import JOINING_EPOCH
from tidemark.partitions.state_machines.groups.requests import (
    Answer as GroupAnswer,
)
from tidemark.partitions.state_machines.groups.requests import (
    Commit,
    ConsumerHeartbeat,
    Heartbeat,
    Join,
    Leave,
    Sync,
)
from tidemark.partitions.state_machines.transactions.requests import Add, Answer, End, Init
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tidemark.testing.simulator.rpc import Answered, Ask
from tidemark.testing.simulator.transactions.asking import (
    Body,
    CommitInTransaction,
    FetchOffset,
    Found,
    ProduceInTransaction,
    Read,
)
from tidemark.testing.simulator.transactions.broker_desk import BrokerDesk
from tidemark.testing.simulator.transactions.coordinators import Coordinators

if TYPE_CHECKING:
    from tidemark.broker.network.connection import Connection
    from tidemark.testing.simulator.process import Process
    from tidemark.testing.simulator.transactions.play import Play

_OLDER: Final = 9
"""A Produce version whose clients add partitions themselves."""
Reply = Callable[[ErrorCode, object], None]


class _Again:
    """Takes something again, in a turn, once its line says so."""

    def __init__(self, process: Process, take: Callable[[], None]) -> None:
        self._process = process
        self._take = take

    def go_on(self, *, may_be_held: bool) -> None:
        del may_be_held
        self._process.later(0.0, self._go_on)

    def _go_on(self) -> None:
        self._take()
        self._process.turn()


class TransactionDesk:
    """Of one process."""

    def __init__(self, process: Process, play: Play) -> None:
        self.process = process
        self._play = play
        self.coordinators = Coordinators(process)
        self.brokers = BrokerDesk(process, self.coordinators)
        """What other brokers ask, or answer."""

    # What happens

    def changed(self, change: GroupChange) -> None:
        replica = self.coordinators.replicas.get(change.key)
        if replica is not None:
            replica.changed(change)
            if change.committed and replica.is_serving:
                self._play.judge.committed(replica)

    def take_more(self) -> bool:
        """Whether something was appended since this was last called."""
        driver = self.coordinators.services.driver
        is_touched, driver.is_touched = driver.is_touched, False
        return is_touched

    def take(self, client: str, ask: Ask) -> None:
        """Answer it, now or later."""
        if self._play.is_too_late(client, ask):
            return

        def reply(error: ErrorCode, value: object = None) -> None:
            self.process.reply(client, Answered(ask.request, error, value))

        if isinstance(ask.body, Read):
            self._read(ask, ask.body, reply)
        else:
            self._take(cast(Body, ask.body), reply, client)

    # Clients

    def _take(self, body: Body, reply: Reply, client: str) -> None:
        try:
            self._answer(body, reply, client)
        except RequestError as error:
            reply(error.code, None)

    def _answer(self, body: Body, reply: Reply, client: str) -> None:
        coordinators = self.coordinators
        match body:
            case Init() | End() | Add():
                self._of_transaction(body, reply)
            case CommitInTransaction():
                self._commit_in_transaction(body, reply, client)
            case ConsumerHeartbeat():
                noted = partial(self._reply_to_heartbeat, body, reply)
                _settle(coordinators.groups.ask(body, GroupAnswer, _same), noted)
                self._moment_of_group(body)
            case Commit() | Sync() | Leave():
                _settle(coordinators.groups.ask(body, GroupAnswer, _same), reply)
                self._moment_of_group(body)
            case Join():
                named = replace(body, new_member_id=self._play.new_member_id())
                self.process.moment("member joins")
                _settle(coordinators.groups.ask(named, GroupAnswer, _same), reply)
            case Heartbeat():
                reply(coordinators.groups.heartbeat(body), None)
            case FetchOffset():
                self._fetch_offset(body, reply)
            case ProduceInTransaction():
                self._produce(body, reply, client)
            case Read():
                raise AssertionError("reads go to the partition that is asked about")
            case _:
                assert_never(body)

    def _reply_to_heartbeat(
        self, body: ConsumerHeartbeat, reply: Reply, error: ErrorCode, value: object
    ) -> None:
        if error is ErrorCode.NONE:
            self._play.granted[body.group_id, body.member_id] += 1
        reply(error, value)

    def _moment_of_group(self, body: Commit | Sync | Leave | ConsumerHeartbeat) -> None:
        match body:
            case Commit():
                self.process.moment("group commits")
            case ConsumerHeartbeat(epoch=epoch) if epoch == JOINING_EPOCH:
                self.process.moment("member joins")
            case Leave() | ConsumerHeartbeat(epoch=-1):
                self.process.moment("member leaves")
            case _:
                pass

    def _of_transaction(self, body: Init | End | Add, reply: Reply) -> None:
        transactions = self.coordinators.transactions
        wants_id = isinstance(body, Init) or (isinstance(body, End) and body.bumps_epoch)
        if wants_id and transactions.needs_fresh_id(body.transactional_id):
            assert isinstance(body, Init | End)
            body = replace(body, fresh_id=self._play.fresh_producer_id())
        _settle(transactions.ask(body, Answer, _same), reply)
        if isinstance(body, End):
            self.process.moment("transaction ends")

    def _commit_in_transaction(self, body: CommitInTransaction, reply: Reply, client: str) -> None:
        groups, producer = self.coordinators.groups, body.commit.producer
        assert producer is not None
        who = Transactional(body.transactional_id, producer.id, producer.epoch, body.adds)
        replica = groups.replica_of(body.commit.group_id)
        line = self.coordinators.verifier.asking_about(replica, who)
        if line is not None:
            again = partial(self._take, body, reply, client)
            line.join(_Again(self.process, again), 0)
            return
        _settle(groups.ask(body.commit, GroupAnswer, _same), reply)
        self.process.moment("offsets in transaction")

    def _fetch_offset(self, body: FetchOffset, reply: Reply) -> None:
        groups = self.coordinators.groups
        found = groups.committed(body.group_id).get(body.partition)
        if groups.is_unstable(body.group_id, body.partition):
            reply(ErrorCode.UNSTABLE_OFFSET_COMMIT, None)
        else:
            reply(ErrorCode.NONE, -1 if found is None else found.offset)

    def _produce(self, body: ProduceInTransaction, reply: Reply, client: str) -> None:
        replica = self.coordinators.topics.replica_here(
            body.partition.topic, body.partition.partition
        )
        version = ADDS_SINCE if body.adds else _OLDER
        if replica.is_holding:
            again = partial(self._take, body, reply, client)
            replica.line.join(_Again(self.process, again), len(body.batch))
            return
        try:
            self.coordinators.verifier.check_known(_request(body), version)
        except NotNow as not_now:
            again = partial(self._take, body, reply, client)
            # A connection that waits: it is told to go on, and that is all.
            waiter = cast("Connection", _Again(self.process, again))
            not_now.line.join(waiter, len(body.batch))
            return
        placed = replica.produce(bytearray(body.batch), api_version=version)
        self.process.moment("transaction goes on")

        def committed(error: RequestError | None) -> None:
            if error is None:
                reply(ErrorCode.NONE, placed.base_offset)
            else:
                reply(error.code, None)

        replica.when_committed(placed.end_offset, committed)

    def _read(self, ask: Ask, body: Read, reply: Reply) -> None:
        replica = self.coordinators.replicas.get(ask.key)
        if replica is None or not replica.is_serving:
            reply(ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
            return
        try:
            found = self._found(replica, body)
        except RequestError as error:
            reply(error.code, replica.log_start)
        else:
            reply(ErrorCode.NONE, found)

    def _found(self, replica: Replica, body: Read) -> Found:
        replica.check_offset(body.offset)
        records = replica.read(
            body.offset, bytes_max=body.bytes_max, at_least_one=True, isolation=body.isolation
        )
        aborted = replica.aborted(records, body.offset) if records else []
        found = Found(
            records=records.read() if records else b"",
            end_offset=replica.end_for(body.isolation),
            aborted=tuple((over.producer_id, over.first_offset) for over in aborted),
        )
        self._play.judge.check_read(replica, body, found)
        return found


def _request(body: ProduceInTransaction) -> ProduceRequest:
    topic, partition = body.partition.topic, body.partition.partition
    data = PartitionProduceData(index=partition, records=body.batch)
    return ProduceRequest(
        transactional_id=body.transactional_id,
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def _same(answer: object) -> object:
    return answer


def _settle(pending: Pending[object], reply: Reply) -> None:
    def deliver(answer: object, error: Exception | None) -> None:
        if isinstance(error, RequestError):
            reply(error.code, None)
            return
        if error is not None:
            raise error
        assert isinstance(answer, Answer | GroupAnswer)
        reply(answer.error, answer)

    pending.deliver_to(deliver)
