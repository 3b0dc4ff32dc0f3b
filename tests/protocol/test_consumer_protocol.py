import pytest
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from hypothesis import given
from hypothesis import strategies as st

from tidemark.protocol.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.types import TopicPartition

PARTITIONS = st.builds(TopicPartition, st.text("ab", max_size=3), st.integers(0, 9))


@given(
    owned=st.frozensets(PARTITIONS),
    generation=st.integers(-1, 9),
    rack=st.none() | st.text("ab", max_size=3),
)
def test_a_subscription_comes_back_as_it_was(
    owned: frozenset[TopicPartition], generation: int, rack: str | None
) -> None:
    said = Subscription(topics=("a", "b"), owned=owned, generation=generation, rack_id=rack)
    assert decode_subscription(encode_subscription(said)) == said


@given(partitions=st.frozensets(PARTITIONS))
def test_an_assignment_comes_back_in_order(partitions: frozenset[TopicPartition]) -> None:
    assert decode_assignment(encode_assignment(partitions)) == tuple(sorted(partitions))


def test_other_clients_read_ours_and_we_theirs() -> None:
    ours = encode_assignment([TopicPartition("t", 2), TopicPartition("t", 0)])
    theirs = ConsumerProtocolMemberAssignment.decode(ours)
    assert theirs.assignment == [("t", [0, 2])]
    assert decode_assignment(ConsumerProtocolMemberAssignment(0, [("t", [1])], b"").encode()) == (
        TopicPartition("t", 1),
    )
    subscription = ConsumerProtocolMemberMetadata(0, ["t"], b"").encode()
    assert decode_subscription(subscription) == Subscription(topics=("t",))
    seen = ConsumerProtocolMemberMetadata.decode(encode_subscription(Subscription(topics=("t",))))
    assert seen.subscription == ["t"]


def test_a_version_from_the_future_is_read_as_far_as_it_is_known() -> None:
    future = b"\x00\x63" + encode_assignment([TopicPartition("t", 0)])[2:] + b"more"
    assert decode_assignment(future) == (TopicPartition("t", 0),)


def test_no_bytes_are_no_partitions() -> None:
    assert decode_assignment(b"") == ()


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff", b"\x00\x00\x00\x00\x00\x09"])
def test_anything_else_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_assignment(data)
