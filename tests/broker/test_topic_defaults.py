"""What can be set of a broker while it runs, and what is said of the rest."""

import pytest

from tidemark.broker.metadata.topic_defaults import replaced
from tidemark.protocol.errors import RequestError


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_throttle_of_replication_is_refused_with_what_there_is_in_its_place(role: str) -> None:
    with pytest.raises(RequestError, match=r"within reassignment\.bytes\.per\.second"):
        replaced({f"{role}.replication.throttled.rate": "1000000"})


@pytest.mark.parametrize(
    ("name", "in_its_place"),
    [("log.retention.hours", "log.retention.ms"), ("log.roll.hours", "log.roll.ms")],
)
def test_of_another_unit_it_is_said_what_to_set_in_its_place(name: str, in_its_place: str) -> None:
    with pytest.raises(RequestError, match=f"does not change .*: set {in_its_place}$"):
        replaced({name: "1"})
