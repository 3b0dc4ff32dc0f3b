"""Users of a cluster of three: set at any broker, and known to each."""

from pathlib import Path

from tests.broker.clusters import open_brokers, wait_until
from tests.broker.handlers.altering_users import alter, deletion, described, upsertion
from tidemark.protocol.errors import ErrorCode


async def test_who_does_not_lead_passes_it_on_and_finds_it_done(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        for number, node in enumerate(brokers.nodes):
            name = f"user-{number}"
            assert await alter(node, upsertion(name)) == {name: ErrorCode.NONE}
            assert name in await described(node)
            refused = await alter(node, upsertion("ada", iterations=1), deletions=[deletion("b")])
            assert refused == {
                "b": ErrorCode.RESOURCE_NOT_FOUND,
                "ada": ErrorCode.UNACCEPTABLE_CREDENTIAL,
            }
        await wait_until(lambda: len({node.cluster.state.version for node in brokers.nodes}) == 1)
        assert len({node.cluster.state.users.salt_secret for node in brokers.nodes}) == 1
        for node in brokers.nodes:
            assert len(await described(node)) == len(brokers.nodes)
