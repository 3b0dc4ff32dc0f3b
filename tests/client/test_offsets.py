import pytest

from tidemark.client.offsets import AtOffset, AtTime, BeforeEnd, Beginning, End, Start, as_start
from tidemark.protocol.types import Offset


def test_the_short_forms_of_a_start() -> None:
    assert as_start("beginning") == as_start("earliest") == Beginning()
    assert as_start("end") == as_start("latest") == End()
    assert as_start(0) == AtOffset(Offset(0))
    assert as_start(-10) == BeforeEnd(10)
    assert as_start(AtTime(5)) == AtTime(5)


@pytest.mark.parametrize(
    "start", [2**63, -(2**63), AtOffset(Offset(-5)), AtTime(2**63), BeforeEnd(-3)]
)
def test_numbers_that_are_no_place_are_refused(start: Start | int) -> None:
    with pytest.raises(ValueError, match=r"is from .* to 9223372036854775807, not"):
        as_start(start)


def test_any_other_word_is_refused() -> None:
    with pytest.raises(ValueError, match="'middle'"):
        as_start("middle")
