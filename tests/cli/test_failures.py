"""What a command that fails says."""

import pytest

from tidemark.cli.failures import advising, most_telling, one_line
from tidemark.protocol.codec import encode
from tidemark.protocol.errors import ErrorCode, MalformedMessage, RequestError
from tidemark.protocol.messages.find_coordinator import FindCoordinatorRequest


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


REFUSED = RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic orders")
BUG = ZeroDivisionError("division by zero")
LOOK = "'tidemark cluster status' shows whether enough brokers are up"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (REFUSED, REFUSED),
        (ExceptionGroup("", [ExceptionGroup("", [REFUSED])]), REFUSED),
        (ExceptionGroup("", [BUG, OSError(5, "I/O error"), REFUSED]), REFUSED),
        (BaseExceptionGroup("", [REFUSED, (stop := KeyboardInterrupt())]), stop),
        (caused(RuntimeError("Error calling __set_name__ on 'Field'"), stop), stop),
    ],
)
def test_of_several_exceptions_the_most_telling_is_told(
    error: BaseException, told: BaseException
) -> None:
    assert most_telling(error) is told


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (REFUSED, "UNKNOWN_TOPIC_OR_PARTITION: no topic orders"),
        (
            RequestError(ErrorCode.LEADER_NOT_AVAILABLE, "x"),
            f"LEADER_NOT_AVAILABLE: x; {LOOK}",
        ),
        (FileNotFoundError(2, "No such file or directory", "x"), "x: No such file or directory"),
        (OSError("cannot connect to a:1:\n  refused"), "cannot connect to a:1: refused"),
        (MemoryError(), "no memory was left"),
        (
            RuntimeError("can't start new thread"),
            (
                "no thread can be started: let the process have more (`ulimit -u`, or the limit of "
                "its container) or more memory"
            ),
        ),
        (BUG, "a bug: ZeroDivisionError: division by zero (-v shows where)"),
    ],
)
def test_an_error_is_one_line(error: BaseException, line: str) -> None:
    assert one_line(error) == line


def test_an_argument_that_is_no_text_is_shown_as_it_came() -> None:
    with pytest.raises(MalformedMessage) as caught:
        encode(FindCoordinatorRequest(key="a\udcff"), 0)
    line = r"b'a\xff' is not UTF-8, which names and texts have to be"
    assert one_line(caught.value) == line


def test_advice_is_for_failures_of_one_code_and_said_once() -> None:
    large = RequestError(ErrorCode.MESSAGE_TOO_LARGE, "a batch of 2000 bytes")
    groups = ExceptionGroup("", [ExceptionGroup("", [large]), large, REFUSED])
    for error in (groups, large, BUG):
        with pytest.raises(type(error)), advising(ErrorCode.MESSAGE_TOO_LARGE, "make it smaller"):
            raise error
    assert one_line(large) == "MESSAGE_TOO_LARGE: a batch of 2000 bytes; make it smaller"
    assert one_line(REFUSED) == "UNKNOWN_TOPIC_OR_PARTITION: no topic orders"
