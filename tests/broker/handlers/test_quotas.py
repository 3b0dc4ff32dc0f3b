"""Quotas are set, looked at and removed by requests."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.nodes import open_node
from tidemark.broker.handlers import alter_client_quotas, describe_client_quotas
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import alter_client_quotas as altering
from tidemark.protocol.messages import describe_client_quotas as describing

Entity = tuple[tuple[str, str | None], ...]

ADA: Entity = (("user", "ada"),)
ANY_USER: Entity = (("user", None),)
LEDGER: Entity = (("client-id", "ledger"),)
ADAS_LEDGER: Entity = (("user", "ada"), ("client-id", "ledger"))


async def alter(
    node: Node, entity: Entity, *, validate_only: bool = False, **values: float | None
) -> ErrorCode:
    entry = altering.EntryData(
        entity=[altering.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[
            altering.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ],
    )
    request = altering.AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    (answer,) = (await ask(alter_client_quotas.handle, node, request, 1)).entries
    assert [(each.entity_type, each.entity_name) for each in answer.entity] == list(entity)
    return ErrorCode(answer.error_code)


async def described(
    node: Node, *components: tuple[str, int, str | None], strict: bool = False
) -> dict[Entity, dict[str, float]]:
    request = describing.DescribeClientQuotasRequest(
        components=[
            describing.ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ],
        strict=strict,
    )
    answer = await ask(describe_client_quotas.handle, node, request, 1)
    assert answer.error_code == ErrorCode.NONE
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            each.key: each.value for each in entry.values
        }
        for entry in answer.entries or ()
    }


async def test_what_is_set_is_described_and_what_is_removed_is_gone(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        assert await alter(node, ADA, producer_byte_rate=1024, request_percentage=12.5) == 0
        assert await alter(node, ADA, producer_byte_rate=1, validate_only=True) == 0
        assert await described(node) == {
            ADA: {"producer_byte_rate": 1024, "request_percentage": 12.5}
        }
        assert await alter(node, ADA, producer_byte_rate=None, request_percentage=None) == 0
        assert await described(node) == {}


@pytest.mark.parametrize("value", [0.0, -1.0])
async def test_a_quota_of_nothing_is_refused_and_changes_nothing(
    tmp_path: Path, value: float
) -> None:
    async with open_node(tmp_path) as node:
        assert await alter(node, ADA, consumer_byte_rate=5) == 0
        assert await alter(node, ADA, consumer_byte_rate=value) == ErrorCode.INVALID_REQUEST
        assert await described(node) == {ADA: {"consumer_byte_rate": 5}}


async def test_one_entity_that_cannot_be_does_not_keep_the_others(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        ops = [altering.OpData(key="producer_byte_rate", value=1.0, remove=False)]
        entities = [
            altering.EntityData(entity_type="ip", entity_name="::1"),
            altering.EntityData(entity_type="user", entity_name="ada"),
        ]
        request = altering.AlterClientQuotasRequest(
            entries=[altering.EntryData(entity=[each], ops=ops) for each in entities],
            validate_only=False,
        )
        answer = await ask(alter_client_quotas.handle, node, request, 1)
        codes = [each.error_code for each in answer.entries]
        assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
        assert list(await described(node)) == [ADA]


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([("user", 0, "ada")], False, [ADA, ADAS_LEDGER]),
        ([("user", 0, "ada")], True, [ADA]),
        ([("user", 1, None)], False, [ANY_USER]),
        ([("user", 2, None)], True, [ADA, ANY_USER]),
        ([("user", 2, None), ("client-id", 2, None)], False, [ADAS_LEDGER]),
        ([("client-id", 0, "ledger")], False, [LEDGER, ADAS_LEDGER]),
        ([("ip", 2, None)], False, []),
        ([], False, [ADA, ANY_USER, LEDGER, ADAS_LEDGER]),
    ],
)
async def test_entities_are_found_by_their_parts(
    tmp_path: Path,
    components: Sequence[tuple[str, int, str | None]],
    strict: bool,
    found: list[Entity],
) -> None:
    async with open_node(tmp_path) as node:
        for entity in (ADA, ANY_USER, LEDGER, ADAS_LEDGER):
            assert await alter(node, entity, producer_byte_rate=1) == 0
        assert list(await described(node, *components, strict=strict)) == found


@pytest.mark.parametrize(
    "component", [("tenant", 2, None), ("user", 3, None), ("user", 0, None), ("user", 1, "ada")]
)
async def test_a_component_that_nothing_can_match_is_refused(
    tmp_path: Path, component: tuple[str, int, str | None]
) -> None:
    kind, how, name = component
    asked = describing.ComponentData(entity_type=kind, match_type=how, match=name)
    request = describing.DescribeClientQuotasRequest(components=[asked], strict=False)
    async with open_node(tmp_path) as node:
        answer = await ask(describe_client_quotas.handle, node, request, 0)
        assert (answer.error_code, answer.entries) == (ErrorCode.INVALID_REQUEST, None)
