"""Declared structs and values behave as the dataclasses they say they are."""

import copy
import dataclasses
import inspect
import pickle
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.protocol import codec, values
from tidemark.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidemark.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest
from tidemark.protocol.schema import maker_of

T = TypeVar("T")

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


FIELDS = st.lists(
    st.sampled_from(
        [
            {},
            {"kw_only": True},
            {"default": 7},
            {"default_factory": list, "hash": False, "compare": False},
            {"default": 8, "init": False},
            {"default_factory": list, "init": False, "compare": False},
            {"default": 9, "repr": False},
            {"default": 10, "compare": False},
        ]
    ),
    max_size=5,
)


def declared(decorate: Any, fields: list[dict[str, Any]], options: dict[str, bool]) -> Any:
    """A class with these fields, or the sentence with which they are refused."""
    namespace: dict[str, Any] = {
        "__annotations__": {f"f{n}": "object" for n in range(len(fields))},
        "__qualname__": "Made",
        "__module__": __name__,
        "__doc__": "Made here.",
        **{f"f{n}": dataclasses.field(**each) for n, each in enumerate(fields)},
    }
    try:
        made = decorate(slots=True, **options)(type("Made", (), namespace))
        made.__init__.__get__(made)  # there is one
    except TypeError as error:
        return str(error)
    return made


def outcome(call: Any, *args: object, **kwargs: object) -> object:
    try:
        return call(*args, **kwargs)
    except (TypeError, AttributeError) as error:
        return type(error)


@given(
    fields=FIELDS,
    frozen=st.booleans(),
    kw_only=st.booleans(),
    eq=st.booleans(),
    by_position=st.lists(st.integers(0, 2), max_size=3),
    by_name=st.dictionaries(st.sampled_from(["f0", "f1", "f2", "f3", "f4"]), st.integers(0, 2)),
)
def test_a_value_is_made_shown_and_compared_as_any_dataclass_is(
    fields: list[dict[str, Any]],
    frozen: bool,
    kw_only: bool,
    eq: bool,
    by_position: list[int],
    by_name: dict[str, int],
) -> None:
    options = {"frozen": frozen, "kw_only": kw_only, "eq": eq}
    theirs: Any
    expected: Any
    theirs, ours = (declared(d, fields, options) for d in (dataclasses.dataclass, values.dataclass))
    if isinstance(theirs, str):
        return
    assert ours.__match_args__ == theirs.__match_args__
    made: Any
    expected, made = (outcome(cls, *by_position, **by_name) for cls in (theirs, ours))
    if isinstance(expected, type):
        assert made is expected
        return
    assert repr(made) == repr(expected)
    assert dataclasses.astuple(made) == dataclasses.astuple(expected)
    assert (made == ours(*by_position, **by_name)) is eq
    assert made != theirs(*by_position, **by_name)
    if eq:
        assert outcome(hash, made) == outcome(hash, expected)
    if fields:  # without any, `dataclasses` does not find its own class
        assert outcome(setattr, made, "f0", 1) == outcome(setattr, expected, "f0", 1)
    again = copy.deepcopy(made)
    assert repr(again) == repr(made)


@values.dataclass(frozen=True, slots=True)
class Box(Generic[T]):
    held: T


@values.dataclass(frozen=True, slots=True)
class Labelled(Box[int]):
    label: str = "none"
    shouted: str = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shouted", self.label.upper())


def test_a_value_has_what_its_bases_have() -> None:
    box = Labelled(1, "a")
    assert (box.held, box.label, box.shouted) == (1, "a", "A")
    assert box != Box(1)
    assert Box(1) == Box(1)
    assert pickle.loads(pickle.dumps(box)) == box
    with pytest.raises(dataclasses.FrozenInstanceError):
        box.label = "b"  # type: ignore[misc]  # which mypy says, too


def test_dataclasses_looks_at_a_class_only_when_it_is_asked() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Pair(Box[int]):
        other: int = 2

    def was_looked_at() -> bool:
        return isinstance(vars(Pair)["__match_args__"], tuple)

    pair = Pair(1)
    assert (pair, hash(pair)) == (Pair(1, 2), hash((1, 2)))
    assert repr(pair).endswith("Pair(held=1, other=2)")
    assert not was_looked_at()
    match pair:
        case Pair(held, other):
            assert (held, other) == (1, 2)
    assert was_looked_at()
    assert dataclasses.replace(pair, held=3) == Pair(3)
    assert [field.name for field in dataclasses.fields(Pair)] == ["held", "other"]


def test_a_default_that_all_instances_would_share_is_refused() -> None:
    @values.dataclass(slots=True)
    class Sharing:
        items: list[int] = []  # noqa: RUF012  # what is refused

    with pytest.raises(ValueError, match="items"):
        Sharing()


class AnnotatedLater(type):
    """As classes are from Python 3.14 on: annotations are not in the namespace, but to be asked."""

    @property
    def __annotations__(cls) -> dict[str, object]:  # type: ignore[override]  # as the class's there
        return {"number": int, "name": str, "kind": ClassVar[int]}


def test_annotations_that_are_made_when_asked_for_are_fields() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Made(metaclass=AnnotatedLater):
        name = "a"

    made: Any = Made
    assert (made(1).number, made(1).name) == (1, "a")
    assert made(1) == made(1, "a") != made(2)
    assert [field.name for field in dataclasses.fields(made)] == ["number", "name"]


def test_help_shows_what_a_class_is_called_with() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Base:
        number: int
        names: list[str] = dataclasses.field(default_factory=list)

    @values.dataclass(frozen=True, slots=True, kw_only=True)
    class Made(Base):
        kind: str = "a"
        hidden: int = dataclasses.field(default=3, init=False)

    class Other(Made):
        def __init__(self, other: int) -> None:
            super().__init__(number=other)

    said = "(number: int, names: list[str] = <factory>, *, kind: str = 'a') -> None"
    assert str(inspect.signature(Made)) == said
    assert Made(1).kind == "a"
    assert str(inspect.signature(Made)) == said
    assert str(inspect.signature(Other)) == "(other: int) -> None"
