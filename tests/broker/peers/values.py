"""Messages of groups and brokers, drawn by hypothesis."""

from uuid import UUID

from hypothesis import strategies as st

from tidemark.partitions.raft.entries import Configuration, Entry, EpochStart, Run
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HandOver,
    Opened,
    PullRequest,
    PullResponse,
    ResetRequest,
    VoteRequest,
    VoteResponse,
)
from tidemark.partitions.replication.peer_messages import (
    ConfirmAnswer,
    ConfirmRound,
    GroupBeat,
    GroupEpoch,
    GroupMessage,
    Heartbeat,
    ObserverReport,
    ObserverStanding,
    PeerMessage,
)
from tidemark.partitions.replication.steady_messages import (
    AnswerRow,
    AppendRow,
    SteadyAnswers,
    SteadyAppends,
    row_key,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

epochs = st.integers(0, 2**31 - 1).map(Epoch)
offsets = st.integers(0, 2**63 - 1).map(Offset)
positions = st.builds(Position, st.integers(-1, 2**31 - 1).map(Epoch), offsets)
nodes = st.integers(0, 2**31 - 1).map(NodeId)
sides = st.sets(nodes, max_size=5).map(lambda side: tuple(sorted(side)))
voters = st.sets(nodes, min_size=1, max_size=5).map(lambda side: tuple(sorted(side)))
keys = st.builds(PartitionKey, st.uuids(), st.integers(0, 2**31 - 1))
configurations = st.builds(Configuration, voters, sides, st.integers(-1, 2**63 - 1))


@st.composite
def entries_after(draw: st.DrawFn, prev: Position) -> tuple[Entry, ...]:
    """Entries as a log has them after `prev`."""
    found: list[Entry] = []
    epoch, end = max(prev.epoch, 0), prev.offset
    for _ in range(draw(st.integers(0, 3))):
        is_run = draw(st.booleans()) and end < 2**62
        if is_run:
            records = draw(st.binary(min_size=1, max_size=50))
            base, end = end, Offset(end + draw(st.integers(1, 1000)))
            found.append(Run(Epoch(epoch), base, end, records))
        elif epoch < 2**30:
            epoch += draw(st.integers(1, 1000))
            found.append(EpochStart(Epoch(epoch), end, draw(nodes), draw(configurations)))
    return tuple(found)


@st.composite
def append_requests(draw: st.DrawFn) -> AppendRequest:
    prev = draw(positions)
    committed, clean_at = draw(positions), draw(st.none() | positions)
    return AppendRequest(draw(epochs), prev, draw(entries_after(prev)), committed, clean_at)


@st.composite
def resets(draw: st.DrawFn) -> ResetRequest:
    rows = sorted(draw(st.sets(epochs, max_size=4)))
    starts = sorted(draw(st.lists(offsets, min_size=len(rows), max_size=len(rows))))
    table = tuple(
        EpochStart(epoch, start, draw(nodes), draw(configurations))
        for epoch, start in zip(rows, starts, strict=True)
    )
    snapshot = draw(st.binary(max_size=50))
    return ResetRequest(draw(epochs), draw(positions), table, snapshot, draw(positions))


@st.composite
def pull_responses(draw: st.DrawFn) -> PullResponse:
    prev = draw(positions)
    reset = draw(st.none() | resets())
    return PullResponse(draw(epochs), prev, draw(entries_after(prev)), draw(positions), reset)


group_messages = st.builds(
    GroupMessage,
    keys,
    st.one_of(
        st.builds(VoteRequest, epochs, st.sampled_from(Ballot), positions),
        st.builds(VoteResponse, epochs, st.sampled_from(Ballot), st.booleans(), st.booleans()),
        append_requests(),
        st.builds(
            AppendResponse,
            epochs,
            positions,
            st.none() | positions,
            st.none() | positions,
            st.booleans(),
        ),
        resets(),
        st.builds(HandOver, epochs),
        st.builds(Opened, epochs),
        st.builds(PullRequest, positions, positions, st.integers(0, 2**31 - 1)),
        pull_responses(),
    ),
)
beats = st.builds(GroupBeat, keys, epochs, st.booleans(), positions, offsets)
counts = st.integers(0, 2**63 - 1)
heartbeats = st.builds(
    Heartbeat,
    incarnation=counts,
    sequence=counts,
    acknowledges=counts,
    groups=st.lists(beats, max_size=3).map(tuple),
)
group_epochs = st.lists(st.builds(GroupEpoch, keys, epochs), max_size=3).map(tuple)
standings = st.builds(ObserverStanding, keys, positions, counts, nodes)
questions = st.one_of(
    st.builds(ConfirmRound, counts, group_epochs),
    st.builds(ConfirmAnswer, counts, group_epochs),
    st.builds(ObserverReport, st.lists(standings, max_size=3).map(tuple)),
)


@st.composite
def steady_appends(draw: st.DrawFn) -> SteadyAppends:
    rows, records = [], []
    for _ in range(draw(st.integers(0, 3))):
        base = Offset(draw(st.integers(0, 2**62)))
        piece = draw(st.binary(min_size=1, max_size=20))
        end = Offset(base + 1)
        rows.append(
            AppendRow(row_key(draw(keys)), draw(epochs), base, end, draw(offsets), len(piece))
        )
        records.append(piece)
    return SteadyAppends(rows, records)


answer_rows = st.builds(AnswerRow, keys.map(row_key), epochs, offsets, offsets)
rows = steady_appends() | st.builds(SteadyAnswers, st.lists(answer_rows, max_size=3))
peer_messages: st.SearchStrategy[PeerMessage] = group_messages | heartbeats | questions | rows


def key(partition: int = 0) -> PartitionKey:
    return PartitionKey(UUID(int=7), partition)


def append(records: object, *, partition: int = 0, base: int = 0) -> GroupMessage:
    """One batch, or what stands for it, to one group."""
    run = Run(Epoch(1), Offset(base), Offset(base + 1), records)  # type: ignore[arg-type]  # of several kinds
    prev = Position(Epoch(1), Offset(base))
    return GroupMessage(key(partition), AppendRequest(Epoch(1), prev, (run,), prev))


def heartbeat(sequence: int = 1) -> Heartbeat:
    return Heartbeat(incarnation=1, sequence=sequence, acknowledges=0, metadata_version=7)


def records_of(message: PeerMessage) -> bytes:
    """The records of one `append`, copied."""
    assert isinstance(message, GroupMessage)
    assert isinstance(message.message, AppendRequest)
    (run,) = message.message.entries
    assert isinstance(run, Run)
    assert isinstance(run.records, bytes | memoryview)
    return bytes(run.records)
