"""What the admin calls about leaders return."""

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedLeader:
    """A leader's move, when it is over. The durations are 0 where nobody knows them any more."""

    partition: TopicPartition
    target: NodeId
    leader: NodeId | None
    """Who leads by now, as far as the broker that was asked knows."""
    attempts: int
    """How often writes were held; 0 if the target led already."""
    catch_up_seconds: float
    """Until the target had nearly all, and writes were held."""
    pause_seconds: float
    """For how long they were held in all."""
    error: RequestError | None = None
    """Why the leader did not go there; `None` if it did."""

    @property
    def was_needless(self) -> bool:
        """Whether the target led already."""
        return self.error is None and self.attempts == 0 and self.leader == self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectedLeader:
    """What became of one partition of `elect_leaders`."""

    partition: TopicPartition
    error: RequestError | None
    """`None` if its preferred leader leads now, and has not before."""

    @property
    def was_needless(self) -> bool:
        """Whether its preferred leader led already."""
        return self.error is not None and self.error.code is ErrorCode.ELECTION_NOT_NEEDED
