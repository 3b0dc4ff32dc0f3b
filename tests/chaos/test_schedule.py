"""Which faults a run has is a matter of its seed."""

from itertools import islice

from tests.chaos.schedule import rounds

KINDS = ["kill", "cut", "pause", "fill"]


def test_the_same_seed_has_the_same_rounds() -> None:
    assert list(islice(rounds(7, KINDS), 50)) == list(islice(rounds(7, KINDS), 50))
    assert list(islice(rounds(7, KINDS), 50)) != list(islice(rounds(8, KINDS), 50))


def test_no_kind_is_left_out_of_the_first_rounds() -> None:
    first = [each.faults for each in islice(rounds(1, KINDS), len(KINDS))]
    assert sorted(first) == sorted((kind,) for kind in KINDS)


def test_some_rounds_are_quiet_and_some_have_several_faults() -> None:
    counts = {len(each.faults) for each in islice(rounds(1, KINDS), 200)}
    assert counts >= {0, 1, 2, 3}
