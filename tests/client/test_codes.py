"""What an answer's error code becomes: an exception with one sentence."""

import pytest

from tidemark.client.codes import check, check_each, failed
from tidemark.protocol.errors import ErrorCode, RequestError


@pytest.mark.parametrize(
    ("number", "what", "message", "told"),
    [
        (3, "topic tides", None, "UNKNOWN_TOPIC_OR_PARTITION: there is no topic tides"),
        (3, "topic tides", "it is gone", "UNKNOWN_TOPIC_OR_PARTITION: topic tides: it is gone"),
        (3, "topic tides", "there is no topic tides", "UNKNOWN_TOPIC_OR_PARTITION: there is no"),
        (69, "group tides", None, "GROUP_ID_NOT_FOUND: there is no group tides"),
        (105, "transactional id t", None, "TRANSACTIONAL_ID_NOT_FOUND: there is no transactional"),
        (68, "group tides", None, "NON_EMPTY_GROUP: group tides: it has members: stop them first"),
        (82, "group tides", None, "FENCED_INSTANCE_ID: group tides: another member has this"),
        (41, "topic tides", None, "NOT_CONTROLLER: topic tides"),
        (29, "tides-0", None, "TOPIC_AUTHORIZATION_FAILED: tides-0: no ACL allows this user"),
        (48, "transactional id t", None, "INVALID_TXN_STATE: transactional id t: it has no trans"),
        (9999, "topic tides", None, "UNKNOWN_SERVER_ERROR: topic tides (code 9999)"),
    ],
)
def test_a_code_is_told_with_what_it_is_about(
    number: int, what: str, message: str | None, told: str
) -> None:
    with pytest.raises(RequestError) as caught:
        check(number, what, message)
    assert str(caught.value).startswith(told)


def test_no_error_is_none() -> None:
    check(ErrorCode.NONE, "topic tides")
    check_each([(0, "tides-0", None)])


@pytest.mark.parametrize(("count", "told"), [(1, 0), (2, 1), (11, 10), (12, 11), (500, 11)])
def test_of_several_refusals_the_first_is_raised_and_has_the_others_with_it(
    count: int, told: int
) -> None:
    results = [(29 * (number > 0), f"tides-{number}", None) for number in range(1 + count)]
    with pytest.raises(RequestError) as caught:
        check_each(results)
    told_of = [str(failed(*result)) for result in results[1:]]
    notes = getattr(caught.value, "__notes__", [])
    assert [str(caught.value), *notes[:10]] == told_of[:11]
    assert len(notes) == told
    assert notes[10:] == ([f"and {count - 11} more"] if count > 11 else [])
