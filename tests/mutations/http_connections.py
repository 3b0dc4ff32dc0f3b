"""What keeps who speaks HTTP from ending the broker, or from keeping it from its end."""

from tests.mutations import Mutation

_CONNECTIONS = "broker/http_connections.py"
_TESTS = "tests/broker/test_http.py::"

MUTATIONS = (
    Mutation(
        name="what an HTTP connection raises ends no other",
        file=_CONNECTIONS,
        old="except* Exception as errors",
        new="except* ZeroDivisionError as errors",
        killed_by=_TESTS + "test_what_a_client_makes_hypercorn_raise_ends_its_own_connection",
    ),
    Mutation(
        name="an HTTP connection that has to end loses its socket",
        file=_CONNECTIONS,
        old="                nursery.start_soon(self._close_at_end, stream)\n",
        new="",
        killed_by=_TESTS + "test_who_does_not_read_what_it_has_asked_for_does_not_hold_up_the_end",
    ),
    Mutation(
        name="there are a few HTTP connections at once",
        file=_CONNECTIONS,
        old="        if len(self._open) >= CONNECTIONS_MAX:",
        new="        if len(self._open) >= CONNECTIONS_MAX * 2:",
        killed_by=_TESTS + "test_the_oldest_connection_makes_room_for_the_newest",
    ),
)
