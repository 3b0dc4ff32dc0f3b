"""A broker that nobody connects to asks to be known by address, and says whom it waits for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from tidemark.broker.config import Address
from tidemark.broker.metadata.reception import CALL_SECONDS, Reception, awaited
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.types import NodeId

OWN = Address("own", 1)
TAKEN = JoinResponse(cluster_id="ours", metadata_version=7, node_id=1, directory_id=UUID(int=1))
REQUEST = JoinRequest(
    cluster_id="ours",
    node_id=4,
    directory_id=UUID(int=4),
    incarnation=2,
    rack=None,
    endpoints=(),
)


@dataclass
class Others:
    """What is at which address: an answer, or nobody."""

    at: Mapping[str, JoinResponse | None]
    asked: list[tuple[float, str]] = field(default_factory=list)
    began: float = field(default_factory=trio.current_time)
    welcomes: list[JoinResponse] = field(default_factory=list)

    async def ask(self, address: Address, request: JoinRequest) -> JoinResponse:
        assert request == REQUEST
        self.asked.append((round(trio.current_time() - self.began), address.host))
        answer = self.at[address.host]
        if answer is None:
            raise ConnectionRefusedError
        return answer

    def reception(self) -> Reception:
        addresses = [OWN, *(Address(host, 1) for host in self.at)]
        return Reception(OWN, lambda: addresses, self.ask, self.welcomes.append)


async def ask_for(seconds: float, reception: Reception) -> list[JoinResponse | None]:
    """Twice a second."""
    answers = []
    end = trio.current_time() + seconds
    while trio.current_time() < end:
        answers.append(await reception.ask(REQUEST))
        await trio.sleep(0.5)
    return answers


async def test_the_others_are_asked_in_turn_once_they_have_had_time_to_connect(
    autojump_clock: MockClock,
) -> None:
    others = Others({"x": None, "y": None})
    assert set(await ask_for(3.5, others.reception())) == {None}
    assert [host for _, host in others.asked] == ["x", "y", "x"]
    assert others.asked[0][0] == 2


async def test_who_has_been_taken_in_gives_the_others_time_to_connect(
    autojump_clock: MockClock,
) -> None:
    """Each time would be a record in the metadata's log."""
    others = Others({"x": None, "y": TAKEN})
    answers = await ask_for(40, others.reception())
    assert answers.count(TAKEN) == 2
    assert others.welcomes == [TAKEN, TAKEN]
    taken = [seconds for seconds, host in others.asked if host == "y"]
    assert taken[1] - taken[0] >= 30


async def test_nobody_to_ask_is_no_answer(autojump_clock: MockClock) -> None:
    assert set(await ask_for(5, Others({}).reception())) == {None}


async def test_who_does_not_answer_is_not_waited_for_for_long(autojump_clock: MockClock) -> None:
    async def ask(address: Address, request: JoinRequest) -> JoinResponse:
        await trio.sleep_forever()
        raise AssertionError

    welcomes: list[JoinResponse] = []
    reception = Reception(OWN, lambda: [Address("x", 1)], ask, welcomes.append)
    await trio.sleep(3)
    began = trio.current_time()
    assert await reception.ask(REQUEST) is None
    assert trio.current_time() - began == CALL_SECONDS
    assert welcomes == []


async def test_another_version_is_no_refusal_for_good(autojump_clock: MockClock) -> None:
    """Broker after broker is upgraded, and the next one may be understood."""
    refused = replace(TAKEN, error_code=ErrorCode.INVALID_REQUEST, error_message="version 9")
    others = Others({"x": refused})
    reception = others.reception()
    await trio.sleep(3)
    with pytest.raises(RequestError, match="NOT_CONTROLLER: version 9"):
        await reception.ask(REQUEST)


@dataclass
class Connected:
    up: Mapping[NodeId, int]

    def trouble_with(self, node: NodeId) -> str:
        return f"{node} is in trouble"


OF_THREE = (
    "the cluster's metadata need 2 of the brokers 1, 2 and 3, and 2 is there (broker 1: "
    "1 is in trouble; broker 3: 3 is in trouble)"
)
OF_FIVE = (
    "the cluster's metadata need 3 of the brokers 1, 3, 4, 5 and 6, and 1 and 3 are there "
    "(broker 4: 4 is in trouble; broker 5: 5 is in trouble; broker 6: 6 is in trouble)"
)
OF_ONE = "the cluster's metadata need broker 1, and none is there (broker 1: 1 is in trouble)"
NO_LEADER = "no broker that leads the cluster's metadata is connected"


@pytest.mark.parametrize(
    ("voters", "up", "said"),
    [
        ((1, 2, 3), (), OF_THREE),
        ((1, 3, 4, 5, 6), (1, 3), OF_FIVE),
        ((1,), (3,), OF_ONE),
        ((1, 2, 3), (1,), NO_LEADER),
        ((), (1,), NO_LEADER),
    ],
)
def test_who_is_awaited_is_said_with_what_is_wrong(
    voters: tuple[int, ...], up: tuple[int, ...], said: str
) -> None:
    connections = Connected({NodeId(node): 1 for node in up})
    assert awaited(NodeId(2), [NodeId(node) for node in voters], connections) == said
