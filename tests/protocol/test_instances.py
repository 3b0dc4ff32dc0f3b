"""Declared structs behave as the frozen dataclasses they say they are."""

import copy
import dataclasses
import pickle

import pytest

from tidemark.protocol import codec
from tidemark.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidemark.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest
from tidemark.protocol.schema import maker_of

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
DECODED = codec.decode(HeartbeatRequest, 4, codec.encode(BEAT, 4))

made_and_decoded = pytest.mark.parametrize("beat", [BEAT, DECODED], ids=["made", "decoded"])


@made_and_decoded
def test_nothing_can_be_assigned_or_deleted(beat: HeartbeatRequest) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        beat.generation_id = 2  # type: ignore[misc]  # which mypy says, too
    with pytest.raises(dataclasses.FrozenInstanceError):
        del beat.generation_id
    with pytest.raises(dataclasses.FrozenInstanceError):
        beat.other = 2  # type: ignore[attr-defined]  # which mypy says, too
    assert not hasattr(beat, "__dict__")


@made_and_decoded
def test_it_is_of_its_own_class_and_equal_to_its_like(beat: HeartbeatRequest) -> None:
    assert type(beat) is HeartbeatRequest
    assert beat == HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert beat != HeartbeatRequest(group_id="g", generation_id=2, member_id="m")
    assert hash(beat) == hash(BEAT)


def test_the_same_values_in_another_class_are_something_else() -> None:
    assert HeartbeatResponse() != HeartbeatRequest(group_id="g", generation_id=0, member_id="")
    assert HeartbeatResponse() != (0, 0)


@made_and_decoded
def test_it_shows_its_fields(beat: HeartbeatRequest) -> None:
    assert repr(beat) == (
        "HeartbeatRequest(group_id='g', generation_id=1, member_id='m', group_instance_id=None)"
    )


@made_and_decoded
def test_it_can_be_replaced_copied_and_pickled(beat: HeartbeatRequest) -> None:
    assert dataclasses.replace(beat, generation_id=2).generation_id == 2
    for twin in (copy.copy(beat), copy.deepcopy(beat), pickle.loads(pickle.dumps(beat))):
        assert twin == beat
        assert type(twin) is HeartbeatRequest


def test_fields_are_given_by_name_and_none_is_forgotten_or_invented() -> None:
    with pytest.raises(TypeError, match=r"ListOffsetsPartition.__init__.*partition_index"):
        ListOffsetsPartition(timestamp=1)  # type: ignore[call-arg]  # which mypy says, too
    with pytest.raises(TypeError, match="offset"):
        ListOffsetsPartition(partition_index=0, timestamp=1, offset=2)  # type: ignore[call-arg]  # so
    with pytest.raises(TypeError):
        ListOffsetsPartition(0, 1)  # type: ignore[call-arg]  # which mypy says, too


def test_a_field_that_is_not_given_has_its_default() -> None:
    request = ListOffsetsRequest(replica_id=-1, topics=[])
    assert request.isolation_level == 0


def test_a_maker_makes_what_its_class_does() -> None:
    make = maker_of(HeartbeatRequest)
    made = make(group_id="g", generation_id=1, member_id="m")
    assert type(made) is HeartbeatRequest
    assert made == BEAT
    with pytest.raises(TypeError, match="member_id"):
        make(group_id="g", generation_id=1)  # type: ignore[call-arg]  # which mypy says, too
