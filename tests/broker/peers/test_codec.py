"""What groups and brokers say goes over the wire and comes out the same."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.peers.values import append, heartbeat, key, peer_messages, records_of
from tidemark.broker.peers.decoding import decode
from tidemark.broker.peers.encoding import FRAME_BYTES, Frame, SharedFrames, encode
from tidemark.partitions.raft.messages import AppendResponse, HandOver
from tidemark.partitions.replication.peer_messages import GroupMessage, PeerMessage
from tidemark.partitions.replication.steady_messages import AppendRow, SteadyAppends, row_key
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages.peer.entries import EntryData, EpochStartData
from tidemark.protocol.messages.peer.pulls import PullResponseData, PullResponses
from tidemark.protocol.messages.peer.versions import LAST_VERSION
from tidemark.protocol.messages.peer.votes import VoteRequestData, VoteRequests
from tidemark.protocol.peer_frames import decode_peer_header
from tidemark.protocol.schema import ZERO_UUID, Message
from tidemark.protocol.types import Epoch, Offset, Position


class Slice:
    """Records in a file, as far as anybody looks."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.position = 0
        self.is_released = False
        self.shares: list[Slice] = []

    def share(self) -> "Slice":
        self.shares.append(Slice(self.size))
        return self.shares[-1]

    def __len__(self) -> int:
        return self.size

    def fileno(self) -> int:
        return -1

    def lend(self) -> int:
        return -1

    def release(self) -> None:
        self.is_released = True


def decoded(frame: Frame) -> list[PeerMessage]:
    data = b"".join(part for part in frame.parts if isinstance(part, bytes))
    assert len(data) == frame.size_bytes
    assert int.from_bytes(data[:4]) == len(data) - 4
    return decode(*decode_peer_header(memoryview(data)[4:]))


def decoded_message(message: Message) -> list[PeerMessage]:
    return decoded(Frame.of(message, LAST_VERSION))


@given(st.lists(peer_messages, max_size=8))
def test_messages_come_out_as_they_went_in(messages: Sequence[PeerMessage]) -> None:
    found = [message for frame in encode(messages, LAST_VERSION) for message in decoded(frame)]
    for message in messages:
        found.remove(message)
    assert not found


@given(st.lists(peer_messages, min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_damage_is_a_message_or_a_refusal(messages: Sequence[PeerMessage], seed: int) -> None:
    random = Random(seed)
    for frame in encode(messages, LAST_VERSION):
        data = bytearray(b"".join(part for part in frame.parts if isinstance(part, bytes))[12:])
        header, _ = decode_peer_header(memoryview(frame.parts[0])[4:])  # type: ignore[arg-type]  # bytes
        for _ in range(3):
            if data:
                data[random.randrange(len(data))] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
        del data[random.randrange(len(data) + 1) :]
        with suppress(MalformedMessage):
            decode(header, memoryview(data))


def test_messages_of_one_kind_share_a_frame_and_keep_their_order() -> None:
    messages = [append(bytes([n + 1]), partition=n) for n in range(100)]
    (frame,) = encode(messages, LAST_VERSION)
    assert [message.key.partition for message in decoded(frame)] == list(range(100))  # type: ignore[union-attr]  # groups'


def test_heartbeats_and_answers_go_before_records_and_a_hand_over_after_them() -> None:
    at = Position(Epoch(1), Offset(1))
    answer = GroupMessage(key(), AppendResponse(Epoch(1), at, at))
    hand_over = GroupMessage(key(), HandOver(Epoch(1)))
    frames = encode([hand_over, append(b"x"), answer, heartbeat()], LAST_VERSION)
    assert [frame.is_urgent for frame in frames] == [True, True, False, False]
    assert decoded(frames[0]) == [heartbeat()]
    assert decoded(frames[-1]) == [hand_over]


def test_frames_are_about_a_megabyte_unless_one_batch_is_larger() -> None:
    sizes = [300_000] * 10 + [3_000_000] + [300_000] * 2
    frames = encode(
        [append(bytes(size), partition=n) for n, size in enumerate(sizes)], LAST_VERSION
    )
    assert [len(decoded(frame)) for frame in frames] == [3, 3, 3, 1, 1, 2]
    assert all(frame.size_bytes <= FRAME_BYTES for frame in frames if len(decoded(frame)) > 1)


def test_decoded_records_do_not_change_with_the_buffer_they_came_in() -> None:
    (frame,) = encode([append(b"abc")], LAST_VERSION)
    buffer = bytearray(b"".join(frame.parts))  # type: ignore[arg-type]  # all of it is in memory
    (message,) = decode(*decode_peer_header(memoryview(buffer)[4:]))
    buffer[:] = bytes(len(buffer))
    assert records_of(message) == b"abc"


def test_slices_stay_apart_and_each_receiver_lets_go_of_its_own() -> None:
    read_once = Slice(50)
    frames = [frame for _ in range(2) for frame in encode([append(read_once)], LAST_VERSION)]
    for frame, own in zip(frames, read_once.shares, strict=True):
        assert own in frame.parts
    frames[0].release()
    assert [own.is_released for own in read_once.shares] == [True, False]
    assert not read_once.is_released


def test_what_several_brokers_are_told_is_encoded_once_unless_it_lies_in_a_file(
    tmp_path: Path,
) -> None:
    row = AppendRow(row_key(key()), Epoch(1), Offset(3), Offset(4), Offset(3), 3)
    shared = SharedFrames()
    message, other = SteadyAppends([row], [b"abc"]), SteadyAppends([row], [b"xyz"])
    frames = [encode([message], LAST_VERSION, shared) for _ in range(2)]
    assert frames[0][0] is frames[1][0]
    assert encode([other], LAST_VERSION, shared) != frames[0]
    file = OsFiles().create(str(tmp_path / "log"))
    in_file = SteadyAppends([row], [LogSlice(file, 0, 3, Offset(4))])
    first, second = (encode([in_file], LAST_VERSION, shared)[0] for _ in range(2))
    assert first.parts[-1] is not second.parts[-1]


BEGINS = EpochStartData(leader=1, voters=(1, 2), outgoing=(), version=-1)


def pull(*entries: EntryData) -> PullResponses:
    data = PullResponseData(
        topic_id=ZERO_UUID,
        partition=0,
        epoch=1,
        prev_epoch=1,
        prev_offset=10,
        entries=entries,
        committed_epoch=1,
        committed_offset=10,
        reset=None,
    )
    return PullResponses(responses=[data])


def entry(
    base: int,
    end: int,
    *,
    epoch: int = 1,
    begins: EpochStartData | None = None,
    records: bytes | None = b"x",
) -> EntryData:
    return EntryData(epoch=epoch, base_offset=base, end_offset=end, begins=begins, records=records)


def test_an_entry_that_fits_is_taken() -> None:
    assert decoded_message(pull(entry(10, 12), entry(12, 12, begins=BEGINS, records=None)))


@pytest.mark.parametrize(
    "message",
    [
        pull(entry(9, 12)),
        pull(entry(10, 12), entry(11, 13)),
        pull(entry(10, 10)),
        pull(entry(12, 10)),
        pull(entry(10, 11, epoch=0)),
        pull(entry(10, 11, records=b"")),
        pull(entry(10, 11, records=None)),
        pull(entry(10, 11, begins=BEGINS)),
        pull(entry(10, 11, begins=BEGINS, records=None)),
        *(
            pull(entry(10, 10, begins=replace(BEGINS, **wrong), records=None))
            for wrong in ({"voters": ()}, {"voters": (2, 1)}, {"leader": -1}, {"version": -2})
        ),
    ],
    ids=repr,
)
def test_entries_that_no_log_can_have_are_refused(message: PullResponses) -> None:
    with pytest.raises(MalformedMessage):
        decoded_message(message)


@pytest.mark.parametrize(("ballot", "offset"), [(3, 0), (-1, 0), (0, -1)])
def test_votes_that_make_no_sense_are_refused(ballot: int, offset: int) -> None:
    data = VoteRequestData(
        topic_id=ZERO_UUID, partition=0, epoch=1, ballot=ballot, last_epoch=0, last_offset=offset
    )
    with pytest.raises(MalformedMessage):
        decoded_message(VoteRequests(requests=[data]))
