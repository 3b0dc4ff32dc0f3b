"""What can be set of a broker while it runs, and what is said of the rest."""

import pytest

from tidemark.broker.metadata.topic_defaults import replaced
from tidemark.protocol.errors import RequestError


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_throttle_of_replication_is_refused_with_what_there_is_in_its_place(role: str) -> None:
    with pytest.raises(RequestError, match=r"within reassignment\.bytes\.per\.second"):
        replaced({f"{role}.replication.throttled.rate": "1000000"})
