"""The words for a place in a log."""

import pytest

from tidemark.cli.places import Shift, parse_start, parse_target
from tidemark.client.offsets import AtOffset, AtTime, BeforeEnd, Beginning, End, Start
from tidemark.protocol.types import Offset

NOW_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("beginning", Beginning()),
        ("start", Beginning()),
        ("earliest", Beginning()),
        ("end", End()),
        ("latest", End()),
        ("0", AtOffset(Offset(0))),
        ("42", AtOffset(Offset(42))),
        ("-10", BeforeEnd(10)),
        ("@1234567890123", AtTime(1_234_567_890_123)),
        ("@-1h", AtTime(NOW_MS - 3_600_000)),
        ("@-1d2h3m4s", AtTime(NOW_MS - 93_784_000)),
        ("2023-11-14", AtTime(1_699_920_000_000)),
        ("2023-11-14T22:13:20", AtTime(NOW_MS)),
        ("2023-11-14T22:13:20Z", AtTime(NOW_MS)),
        ("2023-11-14T23:13:20.005+01:00", AtTime(NOW_MS + 5)),
        ("@2023-11-14T22:13:20Z", AtTime(NOW_MS)),
    ],
)
def test_a_place_to_start(text: str, place: Start) -> None:
    assert parse_start(text, now_ms=NOW_MS) == place


@pytest.mark.parametrize(
    "text", ["", "begin", "1.5", "+", "-", "--1", "@", "@-", "@-h", "@-1x", "@1h", "²", "12:30"]
)
def test_what_is_no_place_is_refused_with_the_ways_to_say_one(text: str) -> None:
    with pytest.raises(ValueError, match="say beginning, end, an offset"):
        parse_start(text, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("text", "target"), [("+5", Shift(5)), ("-5", Shift(-5)), ("5", AtOffset(Offset(5)))]
)
def test_a_groups_offsets_can_be_shifted(text: str, target: Shift | Start) -> None:
    assert parse_target(text, now_ms=NOW_MS) == target


def test_a_plus_is_no_place_to_start() -> None:
    with pytest.raises(ValueError, match="not a place"):
        parse_start("+5", now_ms=NOW_MS)


@pytest.mark.parametrize(
    "text", ["@99999999999999999999", "@-99999999999999d", str(2**63), f"-{2**63}"]
)
def test_what_no_record_can_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="further off than a record's can be"):
        parse_start(text, now_ms=NOW_MS)


def test_a_time_before_the_calendar_is_a_place() -> None:
    assert parse_start("@-999999d", now_ms=NOW_MS) == AtTime(NOW_MS - 999_999 * 86_400_000)
