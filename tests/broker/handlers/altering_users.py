"""How tests set, delete and describe users."""

from collections.abc import Sequence

from tests.broker.handlers.asking import ask
from tidemark.broker.handlers import (
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tidemark.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)

SHA_256, SHA_512 = 1, 2


def upsertion(
    name: str,
    mechanism: int = SHA_256,
    *,
    iterations: int = 4096,
    salt: bytes = b"salt",
    salted_password: bytes | None = None,
) -> ScramCredentialUpsertion:
    if salted_password is None:
        salted_password = bytes(64 if mechanism == SHA_512 else 32)
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password,
    )


def deletion(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


async def alter(
    node: Node,
    *upsertions: ScramCredentialUpsertion,
    deletions: Sequence[ScramCredentialDeletion] = (),
) -> dict[str, ErrorCode]:
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    answer = await ask(alter_user_scram_credentials.CHANGE.answer, node, request, 0)
    assert all((each.error_code == 0) == (each.error_message is None) for each in answer.results)
    codes = {each.user: ErrorCode(each.error_code) for each in answer.results}
    assert len(codes) == len(answer.results), "each user once"
    return codes


async def described(node: Node) -> dict[str, dict[int, int]]:
    request = DescribeUserScramCredentialsRequest(users=None)
    answer = await ask(describe_user_scram_credentials.handle, node, request, 0)
    return {
        each.user: {info.mechanism: info.iterations for info in each.credential_infos}
        for each in answer.results
    }
