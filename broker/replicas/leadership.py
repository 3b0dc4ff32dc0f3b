"""Who leads a partition, as its clients are told."""

from __future__ import annotations

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId

NOBODY = NodeId(-1)


class NotLeader(RequestError):
    """This broker does not lead the partition. Says who does, as far as that is known."""

    def __init__(self, name: str, *, leader: NodeId | None = None, epoch: Epoch = NO_EPOCH) -> None:
        who = "nobody that is known" if leader is None else f"broker {leader}"
        super().__init__(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name} is led by {who}, in epoch {epoch}"
        )
        self.leader = NOBODY if leader is None else leader
        self.epoch = epoch
