"""ConfirmLeadership: all that is committed now, said by a leader that is certain to lead."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tidemark.broker.network.requests import Pending, RequestContext
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.steps import portions
from tidemark.partitions.replication.confirming import Question
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.confirm_leadership import (
    ConfirmedPartition,
    ConfirmedTopic,
    ConfirmLeadershipRequest,
    ConfirmLeadershipResponse,
)
from tidemark.protocol.types import Offset, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.network.timers import Timer
    from tidemark.broker.node import Node


def handle(
    node: Node, request: ConfirmLeadershipRequest, context: RequestContext
) -> Pending[ConfirmLeadershipResponse]:
    return _Confirming(node, request).pending


class _Confirming:
    """A request until all its partitions are confirmed, or its time is over."""

    def __init__(self, node: Node, request: ConfirmLeadershipRequest) -> None:
        self.pending: Pending[ConfirmLeadershipResponse] = Pending()
        self._node = node
        self._request = request
        self._answers: dict[TopicPartition, ConfirmedPartition] = {}
        self._questions: dict[TopicPartition, tuple[Replica, Question]] = {}
        self._wanted = {
            TopicPartition(topic.topic, partition)
            for topic in request.topics
            for partition in topic.partitions
        }
        self._to_ask = portions(sorted(self._wanted))
        self._timer = node.timers.after(max(0, request.timeout_ms) / 1000, self._time_is_up)
        self._next: Timer | None = None
        """When more of them are asked: others on the loop have their turn before."""
        self.pending.on_abandon(self._leave)
        self._go_on()

    def _go_on(self) -> None:
        self.pending.try_complete(self._ask_some)
        if self.pending.is_complete:
            self._leave()

    def _ask_some(self) -> None:
        for partition in next(self._to_ask, ()):
            self._ask(partition)
        if len(self._answers) + len(self._questions) < len(self._wanted):
            self._next = self._node.timers.after(0, self._go_on)
        self._look()

    def _ask(self, partition: TopicPartition) -> None:
        try:
            replica = self._node.topics.replica_here(partition.topic, partition.partition)
            replica.check_leads()
        except RequestError as error:
            self._answers[partition] = _refusal(partition, error)
            return
        question = replica.confirm(partial(self._answered, partition, replica))
        if partition not in self._answers:
            self._questions[partition] = replica, question

    def _answered(
        self, partition: TopicPartition, replica: Replica, answer: Offset | RequestError
    ) -> None:
        self._questions.pop(partition, None)
        if isinstance(answer, RequestError):
            self._answers[partition] = _refusal(partition, replica.why_not_serving())
        else:
            self._answers[partition] = ConfirmedPartition(
                partition=partition.partition, leader_epoch=replica.epoch, high_watermark=answer
            )
        self._look()

    def _time_is_up(self) -> None:
        waited = self._request.timeout_ms
        for partition in self._wanted - self._answers.keys():
            error = RequestError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"cannot confirm that broker {self._node.node_id} still leads {partition}: no "
                f"majority of its voters has answered within {waited} ms",
            )
            self._answers[partition] = _refusal(partition, error)
        self._complete()

    def _look(self) -> None:
        if len(self._answers) == len(self._wanted) and not self.pending.is_complete:
            self._complete()

    def _complete(self) -> None:
        self._leave()
        reads = self._node.metrics.reads
        for answer in self._answers.values():
            (reads.unconfirmed if answer.error_code else reads.confirmed).inc()
        self.pending.complete(
            ConfirmLeadershipResponse(
                topics=[
                    ConfirmedTopic(
                        topic=topic.topic,
                        partitions=[
                            self._answers[TopicPartition(topic.topic, partition)]
                            for partition in topic.partitions
                        ],
                    )
                    for topic in self._request.topics
                ]
            )
        )

    def _leave(self) -> None:
        """Doing it twice is allowed."""
        self._timer.cancel()
        if self._next is not None:
            self._next.cancel()
        for replica, question in self._questions.values():
            replica.forget_question(question)
        self._questions.clear()


def _refusal(partition: TopicPartition, error: RequestError) -> ConfirmedPartition:
    return ConfirmedPartition(
        partition=partition.partition, error_code=error.code, error_message=error.message
    )
