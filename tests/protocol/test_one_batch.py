from dataclasses import replace
from uuid import NAMESPACE_URL, UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.protocol.errors import TidemarkError
from tidemark.protocol.frames import ApiCodec, encode_request
from tidemark.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tidemark.protocol.one_batch import OneBatch, OneBatches
from tidemark.protocol.registry import APIS
from tidemark.protocol.types import Offset

VERSIONS = range(5, 14)
PLENTY = 1_000_000


def request_of(
    *records: bytes | None, acks: int = -1, topic: str = "orders", partition: int = 3
) -> ProduceRequest:
    data = [PartitionProduceData(index=partition + n, records=r) for n, r in enumerate(records)]
    topics = [TopicProduceData(name=topic, topic_id=id_of(topic), partition_data=data)]
    return ProduceRequest(acks=acks, timeout_ms=500, topic_data=topics)


def id_of(topic: str) -> UUID:
    return uuid5(NAMESPACE_URL, topic)


def frame_of(
    request: ProduceRequest, version: int, *, id: int = 7, client: str | None = "c"
) -> bytes:
    """As it comes, without its length."""
    return encode_request(request, version, id, client)[4:]


def taught(*frames: bytes, version: int) -> OneBatches:
    codec = ApiCodec(APIS[0], version)
    batches = OneBatches(codec)
    for frame in frames:
        view = memoryview(frame)
        decoded = codec.decode_request(view, PLENTY)[2]
        assert isinstance(decoded, ProduceRequest)
        batches.remember(view, decoded)
    return batches


def found(batches: OneBatches, frame: bytes) -> tuple[int, int, UUID, int, bytes] | None:
    """The topic as its id, whether it goes by that or by its name."""
    answer = batches.find([memoryview(frame)], bytes_max=PLENTY)
    if answer is None:
        return None
    known, [(partition, _, (records,))] = answer
    topic_id = id_of(known.topic) if known.topic else known.topic_id
    return known.acks, known.timeout_ms, topic_id, partition, bytes(records)


@pytest.mark.parametrize("client", ["c", "", None])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_like_an_earlier_one_is_known_whatever_its_batch(
    version: int, client: str | None
) -> None:
    batches = taught(frame_of(request_of(b"first"), version, client=client), version=version)
    for size in (1, 126, 127, 128, 16_382, 16_383, 300_000):
        like = frame_of(request_of(bytes(size)), version, id=size, client=client)
        assert found(batches, like) == (-1, 500, id_of("orders"), 3, bytes(size))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_answer_is_what_encoding_it_gives(version: int) -> None:
    codec = ApiCodec(APIS[0], version)
    known = OneBatch(request_of(b"first", topic="ü"), codec)
    for number, offset in enumerate((0, 5, 2**62)):
        answer = PartitionProduceResponse(
            index=number, base_offset=offset, log_append_time_ms=-1, log_start_offset=number
        )
        topic = TopicProduceResponse(name="ü", topic_id=id_of("ü"), partition_responses=[answer])
        response = ProduceResponse(responses=[topic])
        answered = known.answers(number, [number], [Offset(offset)], -1, Offset(number))
        assert [answered] == codec.encode_response(response, number)


@pytest.mark.parametrize("version", VERSIONS)
def test_several_partitions_and_topics_are_known_at_once(version: int) -> None:
    topics = [("orders", 0), ("bills", 0), ("orders", 1), ("orders", 2**31 - 1), ("bills", 7)]
    frames = [frame_of(request_of(b"x", topic=t, partition=p), version) for t, p in topics]
    batches = taught(*frames[:2], version=version)
    for frame, (topic, partition) in zip(frames, topics, strict=True):
        assert found(batches, frame) == (-1, 500, id_of(topic), partition, b"x")
    assert found(batches, frame_of(request_of(b"x", topic="others"), version)) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_that_follow_each_other_are_runs_by_partition_and_size(version: int) -> None:
    def frame(number: int, partition: int, *, topic: str = "orders") -> memoryview:
        request = request_of(bytes([number]) * 40, topic=topic, partition=partition)
        return memoryview(frame_of(request, version, id=number))

    batches = taught(bytes(frame(0, 0)), bytes(frame(0, 0, topic="bills")), version=version)
    frames = [frame(n, partition) for n, partition in enumerate((3, 3, 4, 3, 3, 3, 3))]
    answer = batches.find([*frames, frame(9, 3, topic="bills"), frame(9, 3)], bytes_max=100)
    assert answer is not None
    assert [(partition, ids) for partition, ids, _ in answer[1]] == [
        (3, [0, 1]),
        (4, [2]),
        (3, [3, 4]),
        (3, [5, 6]),
    ]
    assert [bytes(each[:1]) for _, _, run in answer[1] for each in run] == [
        bytes([number]) for number in range(7)
    ]
    other = bytearray(frame(1, 3))
    other[3] += 1  # of another version
    shorter = batches.find([frames[0], memoryview(other)], bytes_max=PLENTY)
    assert shorter is not None
    (run,) = shorter[1]
    assert (shorter[0], run[:2], *map(bytes, run[2])) == (answer[0], (3, [0]), bytes(40))


@pytest.mark.parametrize(
    "request_",
    [
        request_of(b"x", acks=0),
        request_of(b"x", b"y"),
        request_of(b""),
        request_of(None),
        replace(request_of(b"x"), topic_data=[]),
        replace(request_of(b"x"), topic_data=[*request_of(b"x").topic_data] * 2),
        replace(request_of(b"x"), transactional_id="t"),
    ],
)
@pytest.mark.parametrize("version", [8, 9])
def test_what_is_not_answered_with_one_row_of_numbers_is_not_remembered(
    request_: ProduceRequest, version: int
) -> None:
    frame = frame_of(request_, version)
    assert found(taught(frame, version=version), frame) is None


@pytest.mark.parametrize("version", [3, 4])
def test_versions_whose_answer_has_no_log_start_are_decoded(version: int) -> None:
    frame = frame_of(request_of(b"x"), version)
    assert found(taught(frame, version=version), frame) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_behind_a_request_are_never_taken_for_its_batch(version: int) -> None:
    frame = frame_of(request_of(b"x"), version)
    assert found(taught(frame + b"?", version=version), frame + b"?") is None
    assert found(taught(frame, version=version), frame + b"?") is None
    assert found(taught(frame, version=version), frame[:-1]) is None


def test_a_request_with_tags_is_decoded() -> None:
    frame = frame_of(request_of(b"x"), 9)
    tagged = frame[:-1] + b"\x01\x63\x00"
    assert found(taught(tagged, version=9), tagged) is None
    assert found(taught(frame, version=9), tagged) is None
    head = 10 + len("c")
    tagged = frame[:head] + b"\x01\x63\x00" + frame[head + 1 :]
    assert found(taught(tagged, version=9), tagged) is None


@pytest.mark.parametrize("version", [8, 9])
def test_names_that_take_memory_are_not_remembered(version: int) -> None:
    of_topic = frame_of(request_of(b"r", topic="t" * 5_000), version)
    of_client = frame_of(request_of(b"r"), version, client="c" * 5_000)
    batches = taught(of_topic, of_client, version=version)
    assert not batches._known


def test_a_connection_that_repeats_nothing_costs_no_more_than_so_much() -> None:
    frames = [frame_of(request_of(b"x", topic=f"t{n:03}"), 8) for n in range(200)]
    batches = taught(*frames, version=8)
    assert sum(found(batches, frame) is not None for frame in frames) == 64


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("size", [1 << 20, 4 << 20])
def test_a_batch_of_megabytes_is_remembered(version: int, size: int) -> None:
    frame = frame_of(request_of(bytes(size)), version)
    assert found(taught(frame, version=version), frame) is not None


def test_a_length_that_could_be_shorter_is_decoded() -> None:
    frame = frame_of(request_of(b"x"), 9)
    at = frame.index(b"\x02x")
    longer = frame[:at] + b"\x82\x00x" + frame[at + 2 :]
    assert found(taught(longer, version=9), longer) is None


@given(
    version=st.sampled_from(VERSIONS),
    sizes=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    at=st.integers(0),
    byte=st.integers(0, 255),
    cut=st.integers(0, 3),
)
def test_whatever_is_known_is_what_decoding_gives(
    version: int, sizes: tuple[int, int], at: int, byte: int, cut: int
) -> None:
    batches = taught(frame_of(request_of(bytes(sizes[0])), version), version=version)
    frame = bytearray(frame_of(request_of(bytes(sizes[1])), version, id=9))
    frame[4 + at % (len(frame) - 4)] = byte  # the route is found by what comes before
    frame = frame[: len(frame) - cut]
    known = found(batches, bytes(frame))
    if known is None:
        return
    try:
        _, _, request = ApiCodec(APIS[0], version).decode_request(memoryview(frame), PLENTY)
    except TidemarkError:
        pytest.fail("what does not decode was known")
    assert isinstance(request, ProduceRequest)
    (topic,) = request.topic_data
    (data,) = topic.partition_data
    assert request.transactional_id is None
    assert data.records is not None
    topic_id = id_of(topic.name) if topic.name else topic.topic_id
    assert known == (request.acks, request.timeout_ms, topic_id, data.index, bytes(data.records))
