"""Balancing leaders; draining brokers, taking them out of the cluster, having them lead again.

Kafka has no words for these: they are Tidemark's own requests, and a Kafka broker is said to be too
old for them.
"""

from collections.abc import Collection
from contextlib import suppress

import trio

from tidemark.client.admin.calls import Calls
from tidemark.client.balance_descriptions import (
    BalancedBroker,
    BalancePlan,
    BrokerStatus,
    PlannedMove,
    RefusedMove,
    StateChange,
    UnevennessTerm,
)
from tidemark.client.codes import check
from tidemark.client.connection import Connection
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import balance_leaders as balance
from tidemark.protocol.messages import describe_brokers
from tidemark.protocol.messages.set_broker_state import (
    SetBrokerStateRequest,
    SetBrokerStateResponse,
)
from tidemark.protocol.types import NodeId, TopicPartition

_LOOK_SECONDS = 0.5


class BrokerAdmin(Calls):
    """The calls about brokers' states, and about who leads how much."""

    async def balance_leaders(self, *, dry_run: bool = False, now: bool = False) -> BalancePlan:
        """Have the cluster even out its leaders, also if it does not do so by itself.

        Returns the plan; a few leaders at a time are moved after that. With `dry_run` none are.
        `now` does not wait for partitions that have just moved, nor for brokers that have just
        started.
        """

        async def ask(connection: Connection) -> balance.BalanceLeadersResponse:
            answer = await connection.request(
                balance.BalanceLeadersRequest(dry_run=dry_run, now=now),
                balance.BalanceLeadersResponse,
            )
            check(answer.error_code, answer.error_message or "BalanceLeaders")
            return answer

        answer = await self._on_any_broker(ask)
        return BalancePlan(
            is_enabled=answer.is_enabled,
            terms=tuple(map(_term, answer.terms)),
            brokers=tuple(map(_balanced, answer.brokers)),
            moves=tuple(map(_move, answer.moves)),
            refusals=tuple(map(_refused, answer.refusals)),
        )

    async def drain_broker(
        self, node_id: int, *, force: bool = False, dry_run: bool = False
    ) -> StateChange:
        """Have a broker's leaders move away; it keeps its replicas and its votes.

        It lasts until `resume_broker`, over its restarts. Raises `RequestError` POLICY_VIOLATION if
        partitions would be without a majority were the broker stopped then, unless it is forced.
        `wait_broker_settled` waits until it is done.
        """
        return await self._set_state(node_id, "draining", force=force, dry_run=dry_run)

    async def resume_broker(self, node_id: int, *, dry_run: bool = False) -> StateChange:
        """Have a broker lead again; a decommission is given up."""
        return await self._set_state(node_id, "active", force=False, dry_run=dry_run)

    async def decommission_broker(
        self, node_id: int, *, force: bool = False, dry_run: bool = False
    ) -> StateChange:
        """Have a broker's replicas move to others. Once it holds nothing, it can be stopped, and
        the cluster forgets it.

        Raises `RequestError` POLICY_VIOLATION if some cannot move, unless it is forced: then the
        others do.
        """
        return await self._set_state(node_id, "decommissioning", force=force, dry_run=dry_run)

    async def describe_brokers(
        self, node_ids: Collection[int] | None = None
    ) -> tuple[BrokerStatus, ...]:
        """What these brokers, or all, lead and hold, and how far they are from what is wanted."""

        async def ask(connection: Connection) -> describe_brokers.DescribeBrokersResponse:
            answer = await connection.request(
                describe_brokers.DescribeBrokersRequest(
                    node_ids=None if node_ids is None else list(node_ids)
                ),
                describe_brokers.DescribeBrokersResponse,
            )
            check(answer.error_code, answer.error_message or "DescribeBrokers")
            return answer

        return tuple(map(_status, (await self._on_any_broker(ask)).brokers))

    async def wait_broker_settled(self, node_id: int) -> BrokerStatus | None:
        """Until a broker is as it is wanted: drained, say. None if it is no broker any more.

        It may take as long as copying takes, or for ever; how long to wait is the caller's to say.
        """
        while True:
            with suppress(OSError):
                try:
                    (status,) = await self.describe_brokers([node_id])
                except RequestError as error:
                    if error.code is not ErrorCode.BROKER_ID_NOT_REGISTERED:
                        raise
                    return None
                if status.is_settled:
                    return status
            await trio.sleep(_LOOK_SECONDS)

    async def _set_state(
        self, node_id: int, state: str, *, force: bool, dry_run: bool
    ) -> StateChange:
        async def ask(connection: Connection) -> SetBrokerStateResponse:
            answer = await connection.request(
                SetBrokerStateRequest(node_id=node_id, state=state, force=force, dry_run=dry_run),
                SetBrokerStateResponse,
            )
            check(answer.error_code, answer.error_message or "SetBrokerState")
            return answer

        answer = await self._on_any_broker(ask)
        return StateChange(
            leaders=answer.leaders,
            replicas=answer.replicas,
            size_bytes=answer.size_bytes,
            refusals=tuple(map(_refused, answer.refusals)),
        )


def _term(term: balance.UnevennessTerm) -> UnevennessTerm:
    return UnevennessTerm(
        name=term.name,
        weight=term.weight if term.weight >= 0 else None,
        before=term.before,
        after=term.after,
    )


def _balanced(broker: balance.BalancedBroker) -> BalancedBroker:
    return BalancedBroker(
        node_id=NodeId(broker.node_id),
        role=broker.role,
        leaders_before=broker.leaders_before,
        leaders_after=broker.leaders_after,
        share_before=broker.share_before,
        share_after=broker.share_after,
    )


def _move(move: balance.PlannedMove) -> PlannedMove:
    return PlannedMove(
        topic_partition=TopicPartition(move.topic, move.partition),
        source=NodeId(move.source),
        target=NodeId(move.target),
        step=move.step,
        gain=move.gain,
        reason=move.reason,
    )


def _refused(refused: balance.RefusedMove) -> RefusedMove:
    topic = refused.topic
    return RefusedMove(
        reason=refused.reason,
        sentence=refused.sentence,
        target=NodeId(refused.target) if refused.target >= 0 else None,
        topic_partition=None if topic is None else TopicPartition(topic, refused.partition),
        partitions=refused.partitions,
    )


def _status(broker: describe_brokers.DescribedBroker) -> BrokerStatus:
    return BrokerStatus(
        node_id=NodeId(broker.node_id),
        rack=broker.rack,
        is_alive=broker.is_alive,
        up_seconds=broker.up_ms / 1000 if broker.up_ms >= 0 else None,
        state=broker.state,
        is_controller=broker.is_controller,
        leaders=broker.leaders,
        replicas=broker.replicas,
        size_bytes=broker.size_bytes,
        bytes_in_per_second=broker.bytes_in_per_second,
        bytes_out_per_second=broker.bytes_out_per_second,
        leaders_coming=broker.leaders_coming,
        leaders_going=broker.leaders_going,
        replicas_going=broker.replicas_going,
        left_seconds=broker.left_ms / 1000 if broker.left_ms >= 0 else None,
        stuck=tuple(broker.stuck),
    )
