"""How long things take before a broker does something about them."""

from __future__ import annotations

from typing import Final

from tidemark.protocol.values import dataclass

_CALM_HEARTBEATS: Final = 8
"""In a failure timeout, where there is nothing to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All in seconds but `campaigns_at_once`.

    A broker that is killed is noticed by its connection. The failure timeout is for one that
    hangs, or is cut off: it has to be longer than any pause of a process that is well, also of one
    that shares two cores with four others (where 0.8 s was too short).
    """

    heartbeat_seconds: float = 0.1
    failure_timeout_seconds: float = 2.0
    news_gap_seconds: float = 0.01
    """News that should not wait for the next heartbeat go no more often than this."""
    election_jitter_seconds: float = 0.05
    election_rank_seconds: float = 0.25
    """A voter waits this long for each living voter that comes before it."""
    campaigns_at_once: int = 256
    """Groups with several voters that campaign at the same time. Each round of them takes several
    messages and syncs, one after the other."""
    campaign_timeout_seconds: float = 0.5
    """After this long without a leader, a candidate tries again, after a pause that is up to as
    long, and may be twice as long each time: a busy disk takes its time for the votes."""
    campaign_wait_max_seconds: float = 8.0
    ask_again_seconds: float = 0.08
    """A candidate that nobody has promised a vote yet asks again, a few times: the others may not
    have had the group when it asked. That takes no disk and no epoch."""
    retry_seconds: float = 1.0
    """Replication that makes no progress for so long is begun again, at first; then doubled."""
    retry_max_seconds: float = 8.0
    pull_seconds: float = 0.5
    """How often an observer asks when it has heard nothing."""
    pull_gap_seconds: float = 0.01
    """It asks no more often than this, however much there is."""
    pull_idle_seconds: float = 5.0
    """How often one asks that has all that the leader has told it of."""
    pull_shun_seconds: float = 30.0
    """For so long a parent that did not answer, or fell behind, is the last to be asked."""
    pull_timeout_seconds: float = 1.5
    """An observer that got no answer for so long, or whose parent lacks what the leader has told
    it of for so long, asks another."""
    report_seconds: float = 0.5
    """How often an observer tells its leader how far it is, if that has changed."""
    confirm_again_seconds: float = 0.2
    """A leader that asks whether it still leads asks again after so long without an answer."""

    @property
    def calm_heartbeat_seconds(self) -> float:
        """Between heartbeats while nobody has anything new to say. A confirmation takes up to two
        of them, so there is time for some to be lost, or late."""
        return max(self.heartbeat_seconds, self.failure_timeout_seconds / _CALM_HEARTBEATS)

    def __post_init__(self) -> None:
        assert 0 < self.heartbeat_seconds < self.failure_timeout_seconds
        assert 0 < self.retry_seconds <= self.retry_max_seconds
        assert self.campaigns_at_once > 0
