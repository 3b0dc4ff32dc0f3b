"""Who may be a broker of the cluster, and which of them vote on its metadata."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tidemark.partitions.state_machines.cluster_values import BrokerMetadata, TopicMetadata
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId


def check_registration(brokers: Mapping[NodeId, BrokerMetadata], new: BrokerMetadata) -> None:
    """Raises `RequestError` unless `new` is a new broker, or a later start of one that is there.

    A process that was started before the one that registered last is a zombie: it is refused here,
    and by its peers, so that nothing is written by two under one number.
    """
    for broker in brokers.values():
        if broker.directory_id == new.directory_id and broker.node_id != new.node_id:
            raise _duplicate(
                f"its data directory is that of broker {broker.node_id}: give broker {new.node_id} "
                "an empty directory"
            )
    known = brokers.get(new.node_id)
    if known is None or known == new:
        return
    if known.directory_id != new.directory_id:
        raise _duplicate(
            f"there is a broker {new.node_id} already, with another data directory: choose "
            "another node.id, or start it on its own directory"
        )
    if new.incarnation < known.incarnation:
        raise RequestError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {new.node_id} has been started again since: this is its start "
            f"{new.incarnation}, and start {known.incarnation} has registered",
        )
    if new.incarnation == known.incarnation:
        raise _duplicate(
            f"another process has registered as start {new.incarnation} of broker {new.node_id}: "
            "its data directory must have been copied"
        )


def check_removal(
    brokers: Mapping[NodeId, BrokerMetadata], topics: Iterable[TopicMetadata], node_id: NodeId
) -> None:
    """Raises `RequestError` for a broker that is not there, or that still holds replicas."""
    if node_id not in brokers:
        raise no_broker(node_id)
    for topic in topics:
        if any(topic.is_host(node_id, partition) for partition in range(topic.partitions)):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"broker {node_id} holds replicas of {topic.name}: move them away first",
            )


def no_broker(node_id: NodeId) -> RequestError:
    return RequestError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {node_id}")


def voters_wanted(
    registered: Sequence[NodeId], current: Sequence[NodeId], is_alive: Callable[[NodeId], bool]
) -> tuple[NodeId, ...]:
    """Who should vote on the cluster's metadata, ascending; `registered` is in that order.

    One broker of one or two (two voters would stop with either of them), three of three or four,
    five of five and more. Who votes goes on voting while it is registered, but for the last of an
    even number; who joins must be alive. While not all places can be filled, everything stays as it
    is: only whole steps are made.
    """
    staying = [node for node in registered if node in current]
    others = [node for node in registered if node not in current and is_alive(node)]
    least = voter_count(len(registered))
    # An even number of voters bears no more losses than one less.
    odd = len(staying) - (len(staying) + 1) % 2
    wanted = (staying + others)[: max(least, odd)]
    return tuple(sorted(current if len(wanted) < least else wanted))


def voter_count(brokers: int) -> int:
    """How many of so many brokers vote on the cluster's metadata."""
    return 5 if brokers >= 5 else 3 if brokers >= 3 else 1


def _duplicate(why: str) -> RequestError:
    return RequestError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, why)
