import pytest

from tidemark.client.offsets import AtOffset, AtTime, BeforeEnd, Beginning, End, as_start
from tidemark.protocol.types import Offset


def test_the_short_forms_of_a_start() -> None:
    assert as_start("beginning") == as_start("earliest") == Beginning()
    assert as_start("end") == as_start("latest") == End()
    assert as_start(0) == AtOffset(Offset(0))
    assert as_start(-10) == BeforeEnd(10)
    assert as_start(AtTime(5)) == AtTime(5)


def test_any_other_word_is_refused() -> None:
    with pytest.raises(ValueError, match="'middle'"):
        as_start("middle")
