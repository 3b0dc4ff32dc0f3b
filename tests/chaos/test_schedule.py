"""Which faults a run has is a matter of its seed."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from random import Random

from tests.chaos.brokers import ChaosCluster
from tests.chaos.schedule import Injection, Round, all_orders, cuts, link_subsets, rounds


@contextmanager
def nothing(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    del cluster, rng
    yield "nothing"


FAULTS = dict.fromkeys(["kill", "cut", "pause", "fill"], nothing)


def kinds(of: Iterable[Round]) -> list[list[str]]:
    return [[injection.kind for injection in each.faults] for each in of]


def test_the_same_seed_has_the_same_rounds() -> None:
    assert list(islice(rounds(7, FAULTS), 50)) == list(islice(rounds(7, FAULTS), 50))
    assert list(islice(rounds(7, FAULTS), 50)) != list(islice(rounds(8, FAULTS), 50))


def test_no_kind_is_left_out_of_the_first_rounds() -> None:
    first = kinds(islice(rounds(1, FAULTS), len(FAULTS)))
    assert sorted(first) == sorted([kind] for kind in FAULTS)


def test_some_rounds_are_quiet_and_some_have_several_faults() -> None:
    counts = {len(each.faults) for each in islice(rounds(1, FAULTS), 200)}
    assert counts >= {0, 1, 2, 3}


def test_three_brokers_have_64_subsets_of_links() -> None:
    subsets = {tuple(subset) for subset in link_subsets([1, 2, 3])}
    assert len(subsets) == 64
    assert len(list(cuts(1, [1, 2, 3]))) == 64


def test_who_ends_and_who_stands_still_comes_in_every_order() -> None:
    assert len(kinds(all_orders(1, [1, 2, 3], with_power=True))) == 12
    assert len(kinds(all_orders(1, [1, 2, 3], with_power=False))) == 6


def test_the_others_have_to_serve_while_one_alone_is_away() -> None:
    away, kept = Injection("isolate one", nothing), Injection("slow network", nothing)
    served = [Round(faults, 1.0, 1.0).is_served for faults in ((away,), (), (away, kept), (kept,))]
    assert served == [True, False, False, False]
