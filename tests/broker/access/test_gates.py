"""Every API has a gate, and a client passes it with what it needs, and with nothing less."""

from typing import Any

import pytest

from tests.broker.access.asked import CASES, FILTERED, OPEN, Case, codes
from tests.broker.access.conftest import Guarded
from tidemark.broker.access.gates import GATES
from tidemark.broker.handlers import HANDLERS
from tidemark.protocol.acls import Permission
from tidemark.protocol.errors import ErrorCode, RequestError

REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def test_every_api_has_a_gate_and_is_tried_here() -> None:
    assert set(GATES) == set(HANDLERS)
    assert {case.key for case in CASES} | FILTERED | OPEN == set(HANDLERS)


async def outcome(guard: Guarded, case: Case, name: str, user: str = "alice") -> tuple[bool, Any]:
    """Whether it is refused, and the answer."""
    try:
        answer = await guard.ask(user, case.request(name), case.at_version)
    except RequestError as error:
        return error.code in REFUSALS, error
    return bool(REFUSALS & set(codes(answer))), answer


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_client_needs_all_of_it_and_no_more(guard: Guarded, case: Case) -> None:
    await guard.create("there")
    is_refused, _ = await outcome(guard, case, "there")
    assert is_refused, "without any ACL"
    for missing in case.needs:
        others = [need for need in case.needs if need != missing]
        acls = await guard.allow("alice", others, "there")
        is_refused, _ = await outcome(guard, case, "there")
        assert is_refused, f"without {missing}"
        await guard.alter(removed=acls)
    await guard.allow("alice", case.needs, "there")
    is_refused, answer = await outcome(guard, case, "there")
    assert not is_refused, answer
    is_refused, answer = await outcome(guard, case, "there", user="admin")
    assert not is_refused, f"a super user may do everything: {answer}"


async def test_a_refusal_tells_nobody_what_there_is(guard: Guarded) -> None:
    await guard.create("real")
    for case in CASES:
        there, there_answer = await outcome(guard, case, "real")
        gone, gone_answer = await outcome(guard, case, "none")
        assert there, case
        assert gone, case
        assert str(there_answer) == str(gone_answer).replace("none", "real"), case


async def test_what_is_denied_is_denied_whatever_allows_it(guard: Guarded) -> None:
    await guard.create("there")
    for case in CASES:
        acls = await guard.allow("alice", case.needs, "there")
        denial = acls[0]._replace(permission=Permission.DENY)
        await guard.alter(added=[denial])
        is_refused, answer = await outcome(guard, case, "there")
        assert is_refused, (case, answer)
        await guard.alter(removed=[*acls, denial])
