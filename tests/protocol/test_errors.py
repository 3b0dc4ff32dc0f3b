"""Codes as they come from whoever answers."""

import pytest

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.primitives import STRING_BYTES_MAX


@pytest.mark.parametrize("number", [-2, 999, 32_767])
def test_a_code_of_a_newer_release_is_an_unknown_error(number: int) -> None:
    """As Kafka's `Errors.forCode` has it: an answer that a broker cannot name must not end it."""
    assert ErrorCode(number) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_what_is_no_number_is_no_code() -> None:
    with pytest.raises(ValueError, match="is not a valid ErrorCode"):
        ErrorCode("NONE")  # type: ignore[arg-type]  # what is asked


def test_a_sentence_that_quotes_the_longest_name_is_a_string_all_the_same() -> None:
    name = "\N{SNOWMAN}" * STRING_BYTES_MAX
    said = RequestError(ErrorCode.INVALID_REQUEST, f"there is no {name}: leave it out").message
    assert said is not None
    assert len(said.encode()) < STRING_BYTES_MAX
    assert said.startswith("there is no \N{SNOWMAN}")
    assert said.endswith("\N{SNOWMAN}: leave it out")
