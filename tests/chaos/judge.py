"""Each topic is held to its own promise, and the group to its own."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.chaos.doubled import ProducersOf, by_librdkafka
from tests.chaos.workload.group import GroupRun
from tests.chaos.workload.stream import Stream
from tidemark.testing.checkers import Anomaly, History, Kind, Outcome, Send, check
from tidemark.testing.checkers.counts import counts

_MARGIN_SECONDS: Final = 2.0
"""How long before a fault what a leader alone has acknowledged counts as replicated."""
_STALL_SECONDS: Final = 0.5
"""An answer that takes as long says that something is wrong with the cluster."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a topic, and what is not though it looks so."""

    topic: str
    anomalies: list[str]
    lost_as_allowed: int = 0
    doubled_by_client: int = 0


def unexplained(streams: Sequence[Stream], said: Sequence[str]) -> list[str]:
    """The topics whose readers have met a corrupt batch, though no fault has flipped a bit there.

    A batch whose CRC is wrong comes from a disk, or else from a broker that sends what it should
    not.
    """
    return [
        f"{', '.join(stream.corrupt[:5])} met corrupt batches, {len(stream.corrupt)} in all, and "
        "no bit was flipped there"
        for stream in streams
        if stream.corrupt and not any(f" {stream.topic}-" in each for each in said)
    ]


def judge(
    stream: Stream, calm: Sequence[Interval], producers: ProducersOf = lambda _: {}
) -> Verdict:
    """`calm`: from when to when nothing was done to the cluster."""
    if not stream.promise.outlives_leader:
        return _judge_leader_only(stream, calm)
    if stream.lost_power_at is not None:
        history = _until(stream.history, stream.lost_power_at)
        found = check(history, reads_are_final=False)
        return _verdict(stream.topic, found, [], history, stream, producers)
    gone = list(_gone(stream.history))
    return _verdict(stream.topic, check(stream.history), gone, stream.history, stream, producers)


def _verdict(
    who: str,
    found: Sequence[Anomaly],
    others: list[str],
    history: History,
    stream: Stream,
    producers: ProducersOf,
) -> Verdict:
    """`history` is what is judged, of what `stream`'s producers have sent."""
    doubled = by_librdkafka(found, history, stream.timeouts, producers)
    anomalies = _named([each for each in found if each not in doubled])
    return Verdict(who, anomalies + others, doubled_by_client=len(doubled))


def judge_group(group: GroupRun, stream: Stream, producers: ProducersOf = lambda _: {}) -> Verdict:
    """At least once: together its members got every record, and no commit went back."""
    own = History(sends=stream.history.sends, polls=group.polls)
    members = {poll.client for poll in group.polls}
    others = _named(list(counts(own, members, may_repeat=True)))
    others += group.commits.regressions()
    return _verdict("the group", check(own, may_jump=True), others, own, stream, producers)


def _judge_leader_only(stream: Stream, calm: Sequence[Interval]) -> Verdict:
    """What may be read is never lost; of what is only acknowledged, what was so in calm times.

    A record may be there twice: when a broker is missing from the metadata for a moment, librdkafka
    gives up its connection and sends anew what was in flight there, whatever `retries` says.
    """
    history = stream.history
    unsure = [replace(send, outcome=Outcome.INFO, offsets=()) for send in history.sends]
    found = check(History(sends=unsure, polls=history.polls))
    anomalies = _named([each for each in found if each.kind is not Kind.DUPLICATE])
    anomalies += _gone(history)
    read = {record.value for poll in history.polls for record in poll.records}
    lost = [
        send
        for send in history.sends
        if send.outcome is Outcome.OK and not read.intersection(send.values)
    ]
    stalls = sorted(send.started for send in history.sends if _is_stalled(send))
    in_calm = [send for send in lost if _is_within(send, calm) and not _is_near(send, stalls)]
    anomalies += [f"acknowledged by its leader in calm times, and lost: {send}" for send in in_calm]
    return Verdict(stream.topic, anomalies, len(lost) - len(in_calm))


def _is_stalled(send: Send) -> bool:
    """On a machine with more to do than it can, leaders change though nothing was injected."""
    return send.outcome is not Outcome.OK or send.ended - send.started > _STALL_SECONDS


def _is_near(send: Send, stalls: Sequence[float]) -> bool:
    at = bisect_left(stalls, send.started - _MARGIN_SECONDS)
    return at < len(stalls) and stalls[at] <= send.ended + _MARGIN_SECONDS


def _is_within(send: Send, calm: Sequence[Interval]) -> bool:
    return any(
        began <= send.started and send.ended <= ended - _MARGIN_SECONDS for began, ended in calm
    )


def _gone(history: History) -> Iterator[str]:
    """What somebody has read, and the last reader has not."""
    last = {
        (record.partition, record.offset)
        for poll in history.polls
        if poll.client == "final"
        for record in poll.records
    }
    for poll in history.polls:
        for record in poll.records:
            if (record.partition, record.offset) not in last:
                yield f"{poll.client} polled {record}, and the last reader did not"


def _until(history: History, time: float) -> History:
    """What was over by then; what had only begun may have happened."""
    return History(
        sends=[
            send
            if send.ended < time
            else replace(send, outcome=Outcome.INFO, offsets=(), ended=float("inf"))
            for send in history.sends
        ],
        polls=[poll for poll in history.polls if poll.ended < time],
    )


def _named(anomalies: Sequence[object]) -> list[str]:
    return [str(anomaly) for anomaly in anomalies]
