"""What keeps who has yet to prove who it is from holding up everybody else."""

from tests.mutations import Mutation

_CONNECTION = "broker/network/connection.py"
_AUTHENTICATE = "broker/handlers/sasl_authenticate.py"
_TESTS = "tests/broker/network/test_strangers.py::"

MUTATIONS = (
    Mutation(
        name="a stranger's frames are small",
        file=_CONNECTION,
        old="            frame_bytes_max = min(frame_bytes_max, STRANGERS_FRAME_BYTES_MAX)\n",
        new="            pass\n",
        killed_by=_TESTS + "test_a_stranger_may_not_announce_a_large_frame",
    ),
    Mutation(
        name="who is known may send large frames",
        file=_AUTHENTICATE,
        old="        session.on_admitted()\n",
        new="        pass\n",
        killed_by=_TESTS + "test_who_is_known_may_send_what_is_large_and_need_not_wait",
    ),
    Mutation(
        name="what follows an authentication waits for it",
        file="broker/network/dispatch.py",
        old="frozenset({19, 20, 21, 30, 31, 33, 36, 37, 42, 44, 47, 49, 51})",
        new="frozenset({19, 20, 21, 30, 31, 33, 37, 42, 44, 47, 49, 51})",
        killed_by=_TESTS + "test_who_is_known_may_send_what_is_large_and_need_not_wait",
    ),
    Mutation(
        name="long messages are refused before they are looked into",
        file=_AUTHENTICATE,
        old="        if len(request.auth_bytes) > MESSAGE_BYTES_MAX:\n            raise failed()\n",
        new="",
        killed_by=_TESTS + "test_a_long_message_is_not_looked_into",
    ),
    Mutation(
        name="authentications have few threads",
        file=_AUTHENTICATE,
        old=", limiter=node.authenticating",
        new="",
        killed_by=_TESTS + "test_strangers_leave_threads_to_others",
    ),
    Mutation(
        name="a name is looked through once",
        file="broker/handlers/api_versions.py",
        old=r'r"(?![\-.])[a-zA-Z0-9\-.]++(?<![\-.])"',
        new=r'r"(?![\-.])[a-zA-Z0-9\-.]+(?<![\-.])"',
        killed_by="tests/broker/handlers/test_lookups.py::"
        "test_a_long_name_of_a_client_is_looked_through_once",
    ),
)
