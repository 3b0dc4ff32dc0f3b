"""What can be set of a broker while it runs, and what is said of the rest."""

import pytest

from tidemark.broker.metadata.running_configs import replaced
from tidemark.protocol.errors import RequestError


@pytest.mark.parametrize(
    ("name", "in_its_place"),
    [("log.retention.hours", "log.retention.ms"), ("log.roll.hours", "log.roll.ms")],
)
def test_of_another_unit_it_is_said_what_to_set_in_its_place(name: str, in_its_place: str) -> None:
    with pytest.raises(RequestError, match=f"does not change .*: set {in_its_place}$"):
        replaced({name: "1"})
