"""The generated codecs say exactly what construct says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.values import A_FEW, MESSAGES, structs, versions_of
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.schema.construct_codec import ConstructCodec
from tidemark.protocol.schema.declaration import Message
from tidemark.protocol.schema.straight_line import StraightLineCodec

by_name = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)


class Pair:
    """Both codecs of one version of one message."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.construct = ConstructCodec(cls, version)
        self.generated = StraightLineCodec(cls, version)

    def outcomes(self, data: bytes) -> tuple[Message | None, Message | None]:
        """What each makes of `data`; None is a refusal."""
        outcomes: list[Message | None] = []
        for codec in (self.construct, self.generated):
            try:
                outcomes.append(codec.decode(data))
            except MalformedMessage:
                outcomes.append(None)
        return outcomes[0], outcomes[1]


@by_name
def test_generated_and_construct_agree_on_values_and_on_damage(cls: type[Message]) -> None:
    pairs = {version: Pair(cls, version) for version in versions_of(cls)}

    @A_FEW
    @given(st.data())
    def check(data: st.DataObject) -> None:
        for version, pair in pairs.items():
            message = data.draw(structs(cls, version), label=f"version {version}")
            encoded = b"".join(pair.construct.encode(message))  # type: ignore[arg-type]  # in memory
            assert b"".join(pair.generated.encode(message)) == encoded  # type: ignore[arg-type]  # so
            assert pair.outcomes(encoded) == (message, message)

            damaged = bytearray(encoded)
            for at, byte in data.draw(damage(len(encoded))):
                damaged[at] = byte
            del damaged[data.draw(st.integers(0, len(damaged))) :]
            construct, generated = pair.outcomes(bytes(damaged))
            assert construct == generated

    check()


def damage(length: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Positions and the bytes to put there; lengths and markers go wrong in few ways."""
    if length == 0:
        return st.just([])
    byte = st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF])
    return st.lists(st.tuples(st.integers(0, length - 1), byte), max_size=3)
