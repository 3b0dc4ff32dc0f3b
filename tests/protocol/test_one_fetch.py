from dataclasses import replace
from uuid import NAMESPACE_URL, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.protocol.frames import ApiCodec, encode_request
from tidemark.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from tidemark.protocol.one_fetch import OneFetches
from tidemark.protocol.registry import APIS
from tidemark.protocol.types import Offset

VERSIONS = range(10, 19)
PLENTY = 1_000_000
TOPIC_ID = uuid5(NAMESPACE_URL, "ü")


def asking(offset: int, *, partition: int = 3, **fields: object) -> FetchRequest:
    topic = FetchTopic(
        topic="ü",
        topic_id=TOPIC_ID,
        partitions=[
            FetchPartition(
                partition=partition,
                fetch_offset=offset,
                partition_max_bytes=1000,
                current_leader_epoch=5,
            )
        ],
    )
    asked = FetchRequest(max_wait_ms=500, min_bytes=7, max_bytes=2000, topics=[topic])
    return replace(asked, **fields)  # type: ignore[arg-type]  # any field of the request


def frame_of(
    request: FetchRequest, version: int, *, id: int = 7, client: str | None = "c"
) -> bytes:
    """As it comes, without its length."""
    return encode_request(request, version, id, client)[4:]


def taught(*frames: bytes, version: int) -> OneFetches:
    codec = ApiCodec(APIS[1], version)
    fetches = OneFetches(codec)
    for frame in frames:
        view = memoryview(frame)
        decoded = codec.decode_request(view, PLENTY)[2]
        assert isinstance(decoded, FetchRequest)
        fetches.remember(view, decoded)
    return fetches


def offset_in(fetches: OneFetches, frame: bytes) -> int | None:
    found = fetches.find(memoryview(frame))
    return None if found is None else found[1]


@pytest.mark.parametrize("client", ["c", "", None])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("first", [0, -1, 2**62])
def test_a_request_like_an_earlier_one_is_known_whatever_its_offset(
    version: int, client: str | None, first: int
) -> None:
    fetches = taught(frame_of(asking(first), version, client=client), version=version)
    for offset in (0, 1, 255, 2**62, -5):
        like = frame_of(asking(offset), version, id=offset % 1000, client=client)
        assert offset_in(fetches, like) == offset


@pytest.mark.parametrize("version", VERSIONS)
def test_what_it_asks_for_is_remembered(version: int) -> None:
    frame = frame_of(asking(0, isolation_level=1), version)
    found = taught(frame, version=version).find(memoryview(frame))
    assert found is not None
    known, _ = found
    assert (known.topic or known.topic_id) == ("ü" if version <= 12 else TOPIC_ID)
    assert (known.partition, known.leader_epoch, known.isolation) == (3, 5, 1)
    assert (known.bytes_max, known.min_bytes) == (1000, 7)


@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_answer_is_what_encoding_it_gives(version: int, isolation: int) -> None:
    codec = ApiCodec(APIS[1], version)
    fetches = taught(frame_of(asking(0, isolation_level=isolation), version), version=version)
    for number, size in enumerate((1, 126, 127, 16_382, 16_383, 300_000)):
        frame = memoryview(frame_of(asking(9, isolation_level=isolation), version, id=number))
        found = fetches.find(frame)
        assert found is not None
        data = PartitionData(
            partition_index=3,
            high_watermark=2**40 + number,
            last_stable_offset=number,
            log_start_offset=1,
            aborted_transactions=() if isolation else None,
            records=bytes(size),
        )
        topic = FetchableTopicResponse(topic="ü", topic_id=TOPIC_ID, partitions=[data])
        ends = Offset(2**40 + number), Offset(number), Offset(1)
        answered = found[0].head(frame, ends, size) + bytes(size) + found[0].ending
        assert [answered] == codec.encode_response(FetchResponse(responses=[topic]), number)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_differs_in_any_other_byte_is_not_known(version: int) -> None:
    frame = frame_of(asking(77), version)
    fetches = taught(frame, version=version)
    offset_at = frame.index((77).to_bytes(8, "big"))
    same = {*range(8), *range(offset_at, offset_at + 8)}  # key and version are the codec's
    for at in set(range(len(frame))) - same:
        other = bytearray(frame)
        other[at] ^= 1
        assert offset_in(fetches, bytes(other)) is None
    assert offset_in(fetches, frame[:-1]) is None
    assert offset_in(fetches, frame + b"\0") is None
    assert offset_in(fetches, frame) == 77


@given(frame=st.binary(max_size=120))
def test_garbage_is_not_known(frame: bytes) -> None:
    fetches = taught(frame_of(asking(77), 12), version=12)
    assert offset_in(fetches, frame) is None


@pytest.mark.parametrize(
    "request_",
    [
        asking(0, topics=[]),
        asking(0, topics=[*asking(0).topics] * 2),
        asking(0, topics=[replace(asking(0).topics[0], partitions=[])]),
        asking(0, session_id=1, session_epoch=1),
        asking(0, session_epoch=0),
        asking(0, rack_id="here"),
        asking(0, replica_id=2),
        asking(0, replica_id=-2),
    ],
)
def test_what_is_more_than_that_is_decoded_each_time(request_: FetchRequest) -> None:
    frame = frame_of(request_, 11)
    assert offset_in(taught(frame, frame, version=11), frame) is None


def test_a_follower_of_a_later_version_is_decoded_each_time() -> None:
    frame = frame_of(asking(0, replica_state=ReplicaState(replica_id=2)), 15)
    assert offset_in(taught(frame, version=15), frame) is None


def test_of_early_versions_nothing_is_known() -> None:
    frame = frame_of(asking(0), 9)
    assert offset_in(taught(frame, version=9), frame) is None


def test_what_encoding_would_not_give_is_decoded_each_time() -> None:
    forgets = asking(0, forgotten_topics_data=[ForgottenTopic(topic="ü", partitions=[1])])
    frame = frame_of(asking(0), 12)
    header_bytes = 8 + 2 + 1
    assert frame[header_bytes] == 0
    tagged = frame[:header_bytes] + b"\x01\x63\x00" + frame[header_bytes + 1 :]
    assert frame.endswith(b"\x00")
    ends_tagged = frame[:-1] + b"\x01\x63\x00"
    for odd in (tagged, ends_tagged):
        assert offset_in(taught(odd, version=12), odd) is None
    # What it forgets is nothing to one that keeps no session, and it is said each time.
    known = frame_of(forgets, 12)
    assert offset_in(taught(known, version=12), known) == 0


def test_few_are_known_at_once_and_those_that_came_last() -> None:
    frames = [frame_of(asking(0, partition=number), 12) for number in range(6)]
    fetches = taught(*frames, version=12)
    known = [offset_in(fetches, frame) for frame in frames]
    assert known == [None, None, 0, 0, 0, 0]


def test_a_client_that_asks_for_nothing_twice_is_not_learnt_from_for_ever() -> None:
    frames = [frame_of(asking(0, partition=number), 12) for number in range(70)]
    fetches = taught(*frames, version=12)
    assert offset_in(fetches, frames[63]) == 0
    assert offset_in(fetches, frames[69]) is None
