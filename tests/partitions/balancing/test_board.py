"""The sums that the search goes by, against their definitions."""

from random import Random

import pytest
from hypothesis import given

from tests.partitions.balancing.any_cluster import ANY_SETTINGS, SEEDS, healthy_cluster
from tidemark.partitions.balancing.board import NONE, Board
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Snapshot


@given(cluster=healthy_cluster(), settings=ANY_SETTINGS)
def test_the_best_target_is_the_one_with_the_most_net_gain(
    cluster: Snapshot, settings: Settings
) -> None:
    board = Board(cluster, settings)
    free, lots = [1] * len(board.brokers), [0.0] * len(board.brokers)
    for number, lead in enumerate(board.lead):
        nets = {at: board.net(number, at) for at in board.targets[number] if at != lead}
        best, net = board.best(number, free, lots)
        if not nets:
            assert best == NONE
        else:
            assert net == pytest.approx(max(nets.values()))
            assert nets[best] == pytest.approx(net)


@given(cluster=healthy_cluster(), settings=ANY_SETTINGS, seed=SEEDS)
def test_a_gain_is_what_the_objective_falls_by_and_the_sum_of_its_terms(
    cluster: Snapshot, settings: Settings, seed: int
) -> None:
    board, lots = Board(cluster, settings), Random(seed)
    number = lots.randrange(len(board.groups))
    targets = [at for at in board.targets[number] if at != board.lead[number]]
    if targets:
        target, before = lots.choice(targets), board.objective()
        gain, gains = board.gain(number, target), board.gains(number, target)
        board.move(number, target)
        assert before.total - board.objective().total == pytest.approx(gain, abs=1e-9)
        assert gains.count + gains.topic + gains.share + gains.preferred == pytest.approx(gain)
