from itertools import islice
from random import Random

from tidemark.client.retries import Backoff, may_pass
from tidemark.protocol.errors import ErrorCode, RequestError


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff(initial_seconds=0.1, max_seconds=1.0, jitter=0.0)
    assert list(islice(backoff.delays(Random(1)), 6)) == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_jitter_only_makes_a_delay_shorter_and_by_its_share_at_most() -> None:
    backoff = Backoff(initial_seconds=1.0, max_seconds=1.0, jitter=0.4)
    delays = [backoff.delay(0, Random(seed)) for seed in range(200)]
    assert 0.6 <= min(delays) < max(delays) <= 1.0
    assert len(set(delays)) == 200


def test_a_very_late_attempt_is_no_overflow() -> None:
    assert Backoff(jitter=0.0).delay(100_000, Random(1)) == 1.0


def test_network_errors_may_pass_and_a_refusal_may_not() -> None:
    assert may_pass(ConnectionError("gone"))
    assert may_pass(RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert not may_pass(RequestError(ErrorCode.TOPIC_ALREADY_EXISTS))
