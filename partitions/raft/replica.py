"""What one replica holds and has to say, whatever its role: the part that survives a role change.

Here is the bookkeeping of durability. Everything that is to be written gets a token with the
`Ready` that asks for it, and a token stands for a position of the log. A truncation takes that
position back from the tokens that are still out: what was cut and then written anew, at the same
offset, is another entry, and the old token must not make it durable (the ABA race).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.raft.entries import Configuration, Entry, EpochStart
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import AppendResponse, HardState, Message, ResetRequest
from tidemark.partitions.raft.ports import Limits, Peers, ReadEntries
from tidemark.partitions.raft.ready import Failure, Leadership, Outgoing, Ready
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

NOWHERE: Final = Position(Epoch(-2), Offset(0))
"""Before everything: what is known of a replica that has not answered."""
NEVER: Final = Position(Epoch(1 << 31), Offset(0))
"""Beyond everything: what a replica has to hold that does not count whatever it holds."""


class Replica:
    """The log's shape, the vote, what is durable and committed; and what is to be done about it.

    Invariant: `durable <= shape.last` and `committed <= shape.last`.
    """

    __slots__ = (
        "_committed_told",
        "_entries",
        "_epoch_told",
        "_failure_told",
        "_hard_state_changed",
        "_hard_state_token",
        "_has_appended",
        "_leader_told",
        "_reset",
        "_sealed",
        "_send",
        "_send_after",
        "_serving_told",
        "_token",
        "_token_durable",
        "_tokens",
        "_truncate_to",
        "committed",
        "durable",
        "epoch",
        "failure",
        "has_ready",
        "in_doubt",
        "is_clean",
        "leader",
        "left_in",
        "life",
        "limits",
        "node_id",
        "peers",
        "read",
        "shape",
        "voted_for",
    )

    def __init__(
        self,
        *,
        node_id: NodeId,
        shape: LogShape,
        hard_state: HardState,
        committed: Offset,
        read: ReadEntries,
        peers: Peers,
        limits: Limits,
        is_clean: bool = True,
        life: int = 0,
        in_doubt: bool = False,
        left_in: Epoch | None = None,
    ) -> None:
        """`shape` and `hard_state` are what was found on disk, all of it durable.

        `committed` may be less than what was known once. `is_clean` is false for a replica that
        may have lost entries it acknowledged. One that may have forgotten epochs and votes too is
        `in_doubt` (`doubt.py`). Its `life` is greater than any in which it has lost less. One that
        was here before, and has given up what it held, `left_in` that epoch (`returning.py`).
        """
        self.node_id = node_id
        self.shape = shape
        # An epoch start may be durable where the hard state before it is not. The vote in that
        # epoch is free then: it has a leader, so no other candidate can get a majority.
        is_behind = hard_state.epoch < shape.last.epoch
        self.epoch = shape.last.epoch if is_behind else hard_state.epoch
        self.voted_for = None if is_behind else hard_state.voted_for
        self.committed = min(max(shape.position_of(committed), shape.start), shape.last)
        self.durable = shape.last
        self.read = read
        self.peers = peers
        self.limits = limits
        self.is_clean = is_clean and not in_doubt
        self.in_doubt = in_doubt
        self.left_in = left_in
        self.life = life
        self.leader: NodeId | None = None
        self.failure: Failure | None = None
        self.has_ready = False
        self._sealed: tuple[Ready, ...] = ()
        self._reset: ResetRequest | None = None
        self._truncate_to: Position | None = None
        self._entries: tuple[Entry, ...] = ()
        self._has_appended = False
        self._hard_state_changed = False
        self._hard_state_token = 0
        # Tuples: an idle group keeps no list, and what is in one is mostly one.
        self._send: tuple[Outgoing, ...] = ()
        self._send_after: tuple[Outgoing, ...] = ()
        self._token = 0
        self._token_durable = 0
        # Those that are still out, and up to where the log is durable when they are.
        self._tokens: tuple[tuple[int, Position], ...] = ()
        self._committed_told = self.committed
        self._epoch_told = self.epoch
        self._leader_told: NodeId | None = None
        self._serving_told = False
        self._failure_told = False

    @property
    def config(self) -> Configuration:
        return self.shape.config

    @property
    def high_watermark(self) -> Offset:
        """Below it nothing will ever change."""
        return self.committed.offset

    @property
    def is_leader(self) -> bool:
        return self.leader == self.node_id

    @property
    def is_serving(self) -> bool:
        """Whether it leads and has committed an entry of its own epoch.

        Before, it does not know how far its predecessors committed (Raft §8).
        """
        return self.leader == self.node_id and self.committed.epoch == self.epoch

    @property
    def is_hard_state_durable(self) -> bool:
        return not self._hard_state_changed and self._hard_state_token <= self._token_durable

    @property
    def is_written(self) -> bool:
        """Whether all that was to be written has been taken, so that the log can be read."""
        return not (
            self._sealed
            or self._entries
            or self._reset is not None
            or self._truncate_to is not None
        )

    def hears_leader(self, besides: NodeId) -> bool:
        """Whether it knows of a leader, other than `besides`, that is alive."""
        leader = self.leader
        return leader is not None and leader != besides and self.peers.is_alive(leader)

    def holds(self, position: Position) -> bool:
        """Whether the log has this position of the leader's log.

        What is committed is in every later leader's log (§5.4.3), so whatever a leader has up to
        there is the same here, also where the table no longer goes back so far.
        """
        committed = self.committed
        is_committed = position <= committed and position.offset <= committed.offset
        return is_committed or self.shape.contains(position)

    # What is to be written

    def set_hard_state(self, epoch: Epoch, voted_for: NodeId | None) -> None:
        assert epoch >= self.epoch
        self.epoch, self.voted_for = epoch, voted_for
        self._hard_state_changed = True
        self.has_ready = True

    def end_doubt(self) -> None:
        """What it may have forgotten binds it no more (`doubt.py`); the vote of this epoch is given
        away, durably."""
        assert self.voted_for is not None
        assert self.is_hard_state_durable
        mark("doubt_ended")
        self.in_doubt, self.is_clean = False, True
        self.has_ready = True

    def write(self, entries: Sequence[Entry]) -> None:
        """These follow the log's last entry."""
        for entry in entries:
            if isinstance(entry, EpochStart):
                self.shape.begin(entry)
            else:
                self.shape.extend(entry.end_offset)
        self._entries += tuple(entries)
        self.has_ready = True

    def extend(self, end_offset: Offset, *, is_durable: bool) -> None:
        """Records that are written already."""
        self.shape.extend(end_offset)
        if not is_durable:
            self._has_appended = True
            self.has_ready = True
        elif not self._has_writes:
            if self._tokens:  # durable as soon as what precedes it is
                self._tokens = (*self._tokens[:-1], (self._tokens[-1][0], self.shape.last))
            else:
                self.durable = self.shape.last

    def truncate(self, to: Position) -> None:
        """Cut what lies behind `to`. Nothing committed ever is."""
        assert to >= self.committed
        mark("truncated")
        if self._entries:
            mark("truncated_what_was_not_even_written")
            self._sealed += (self._close(),)
        self.shape.truncate(to)
        self._truncate_to = to
        self._forget_durable_beyond(to)
        self.has_ready = True

    def reset(self, request: ResetRequest) -> None:
        """Give up the log for one that begins at the leader's log start."""
        assert request.start > self.committed
        mark("reset")
        if self._entries or self._truncate_to is not None or self._reset is not None:
            self._sealed += (self._close(),)
        self.shape.reset(request.start, request.table)
        self._reset = request
        self._forget_durable_beyond(NOWHERE)
        self.commit_to(request.start)
        self.has_ready = True

    def fail(self, logs_part_at: Position) -> None:
        mark("failed")
        self.failure = Failure(logs_part_at, self.committed)
        self.leader = None
        self.has_ready = True

    # What is known

    def commit_to(self, position: Position) -> None:
        """Everything up to `position`, which is in this log, is committed."""
        if position > self.committed:
            if not self.shape.contains(position):
                mark("bad_committed")  # no log that has this one's entries has such a position
                return
            # Mostly the log's end: then it is that object, of which an idle group keeps one.
            last = self.shape.last
            self.committed = last if position == last else position
            self.has_ready = True

    def note_durable(self, token: int) -> None:
        self._token_durable = max(self._token_durable, token)
        done = 0
        for number, position in self._tokens:
            if number > token:
                break
            done += 1
            if position > self.durable:
                self.durable = position
        self._tokens = self._tokens[done:]

    # What is to be said

    def send(self, to: NodeId, message: Message) -> None:
        self._send += (Outgoing(to, message),)
        self.has_ready = True

    def send_after(self, to: NodeId, message: Message) -> None:
        """Once all that is to be written by now is durable."""
        self._send_after += (Outgoing(to, message),)
        self.has_ready = True

    def response(
        self, prev: Position, match: Position | None, conflict: Position | None = None
    ) -> AppendResponse:
        """To a request that began at `prev`."""
        return AppendResponse(
            self.epoch, prev, match, conflict, self.is_clean, self.life, self.in_doubt
        )

    def answer(self, to: NodeId, message: Message, *, holds: Position | None = None) -> None:
        """Say something that promises the epoch, the vote and the log up to `holds`."""
        if self.is_hard_state_durable and (holds is None or holds <= self.durable):
            self.send(to, message)
        else:
            self.send_after(to, message)

    def take(self) -> Ready:
        """The next `Ready`; only to be asked for while `has_ready`."""
        if self._sealed:  # what came after it is still to come, if it is anything
            ready, *rest = self._sealed
            self._sealed = tuple(rest)
            return ready
        self.has_ready = False
        return self._close()

    @property
    def is_quiet(self) -> bool:
        """Whether the next `Ready` would say at most that records were appended, and committed."""
        return not (
            self._sealed
            or self._entries
            or self._send
            or self._send_after
            or self._hard_state_changed
            or self._truncate_to is not None
            or self._reset is not None
            or self.failure is not None
            or self.is_serving != self._serving_told
            or self.epoch != self._epoch_told
            or self.leader != self._leader_told
        )

    def take_quiet(self) -> tuple[int, Position | None]:
        """The next `Ready`'s token, and what is committed if that has moved; while `is_quiet`."""
        self.has_ready = False
        token, committed = 0, self.committed
        if self._has_appended:
            self._has_appended = False
            self._token = token = self._token + 1
            self._tokens += ((token, self.shape.last),)
        if committed is self._committed_told:
            return token, None
        self._committed_told = committed
        return token, committed

    @property
    def _has_writes(self) -> bool:
        return bool(
            self._has_appended
            or self._entries
            or self._send_after
            or self._hard_state_changed
            or self._truncate_to is not None
            or self._reset is not None
        )

    def _close(self) -> Ready:
        """What has come together, as a `Ready` of its own."""
        token = 0
        if self._has_writes:
            self._token = token = self._token + 1
            self._tokens += ((token, self.shape.last),)
        hard_state = leadership = None
        if self._hard_state_changed:
            hard_state = HardState(self.epoch, self.voted_for)
            self._hard_state_token = token
        if self.epoch != self._epoch_told or self.leader != self._leader_told:
            self._epoch_told, self._leader_told = self.epoch, self.leader
            leadership = Leadership(self.epoch, self.leader)
        committed, is_serving = self.committed, self.is_serving
        ready = Ready(
            token,
            self._reset,
            self._truncate_to,
            self._entries,
            hard_state,
            self._send,
            self._send_after,
            committed if committed is not self._committed_told else None,
            leadership,
            is_serving if is_serving != self._serving_told else None,
            None if self._failure_told else self.failure,
        )
        self._committed_told = committed
        self._serving_told = is_serving
        self._failure_told = self.failure is not None
        self._reset = self._truncate_to = None
        self._has_appended = self._hard_state_changed = False
        self._entries = self._send = self._send_after = ()
        return ready

    def _forget_durable_beyond(self, to: Position) -> None:
        self.durable = min(self.durable, to)
        if self._tokens and self._tokens[-1][1] > to:
            mark("token_taken_back")
            self._tokens = tuple((token, min(position, to)) for token, position in self._tokens)
