"""A broker that is asked whether a transaction has begun."""

from collections.abc import Awaitable, Callable

import trio

from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)


class Coordinator:
    """Answers each question with the next code, and then always with the last."""

    def __init__(self, *codes: ErrorCode) -> None:
        self.codes = list(codes)
        self.asked: list[AddPartitionsToTxnTransaction] = []
        self.before_answer: Callable[[], Awaitable[object]] | None = None

    async def answer(
        self, transactional_id: str, asked: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        (transaction,) = asked.transactions
        assert transaction.transactional_id == transactional_id
        self.asked.append(transaction)
        await trio.lowlevel.checkpoint()
        code = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
        meanwhile, self.before_answer = self.before_answer, None
        if meanwhile is not None:
            await meanwhile()
        if code is ErrorCode.NETWORK_EXCEPTION:
            raise RequestError(code)
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=transactional_id,
                    topic_results=[
                        AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(
                                    partition_index=partition, partition_error_code=code
                                )
                                for partition in topic.partitions
                            ],
                        )
                        for topic in transaction.topics
                    ],
                )
            ]
        )


def asked_of(node: Node, *codes: ErrorCode) -> Coordinator:
    coordinator = Coordinator(*codes)
    node.verifier.ask = coordinator.answer
    return coordinator
