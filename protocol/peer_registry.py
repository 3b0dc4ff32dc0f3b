"""The messages that brokers exchange, and their keys, which no client API will ever have.

They are on the listener for brokers only, and nothing else is: a client's request there is an
unknown key, like one of these on a client's listener. All of them have one version, that of the
protocol between brokers (`messages/peer/versions.py`); Hello settles which one two brokers speak.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tidemark.protocol.messages.peer import (
    appends,
    ask,
    confirms,
    forward,
    heartbeat,
    hello,
    join,
    load_report,
    observer_reports,
    pulls,
    resets,
    steady,
    votes,
)
from tidemark.protocol.schema.declaration import Message
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class PeerApi:
    """One kind of frame between brokers. Without a response it is one-way."""

    key: int
    name: str
    request: type[Message]
    response: type[Message] | None


def _call(key: int, request: type[Message], response: type[Message]) -> PeerApi:
    return PeerApi(key, request.__name__.removesuffix("Request"), request, response)


def _one_way(key: int, cls: type[Message]) -> PeerApi:
    return PeerApi(key, cls.__name__, cls, None)


PEER_APIS: Final[Mapping[int, PeerApi]] = MappingProxyType(
    {
        api.key: api
        for api in (
            _call(10_000, hello.HelloRequest, hello.HelloResponse),
            _call(10_001, join.JoinRequest, join.JoinResponse),
            _call(10_002, forward.ForwardRequest, forward.ForwardResponse),
            _call(10_003, forward.ProposeRequest, forward.ProposeResponse),
            _call(10_004, load_report.LoadReportRequest, load_report.LoadReportResponse),
            _call(10_005, ask.AskRequest, ask.AskResponse),
            _one_way(10_010, heartbeat.PeerHeartbeat),
            _one_way(10_011, votes.VoteRequests),
            _one_way(10_012, votes.VoteResponses),
            _one_way(10_013, votes.HandOvers),
            _one_way(10_014, appends.AppendRequests),
            _one_way(10_015, appends.AppendResponses),
            _one_way(10_016, resets.ResetRequests),
            _one_way(10_017, pulls.PullRequests),
            _one_way(10_018, pulls.PullResponses),
            _one_way(10_019, votes.OpenedReplicas),
            _one_way(10_020, confirms.ConfirmRounds),
            _one_way(10_021, confirms.ConfirmAnswers),
            _one_way(10_022, observer_reports.ObserverReports),
            _one_way(10_030, steady.SteadyAppends),
            _one_way(10_031, steady.SteadyAnswers),
        )
    }
)
"""By key."""

_BY_REQUEST: Final = {api.request: api for api in PEER_APIS.values()}


def peer_api_of(request_type: type[Message]) -> PeerApi:
    """The API that a request, or a one-way message, belongs to."""
    return _BY_REQUEST[request_type]
