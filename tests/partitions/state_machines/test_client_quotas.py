"""Quotas of users and clients: what they take, and which one holds for whom."""

import math

import pytest

from tidemark.partitions.state_machines import client_quotas
from tidemark.partitions.state_machines.client_quotas import (
    NAME_BYTES_MAX,
    ClientQuotas,
    QuotaChange,
    QuotaKey,
    entity_of,
)
from tidemark.protocol.errors import ErrorCode, RequestError

RATE = QuotaKey.PRODUCER_BYTE_RATE

# Each is more particular than those below it.
ORDER: tuple[list[tuple[str, str | None]], ...] = (
    [("user", "ada"), ("client-id", "ledger")],
    [("user", "ada"), ("client-id", None)],
    [("user", "ada")],
    [("user", None), ("client-id", "ledger")],
    [("user", None), ("client-id", None)],
    [("user", None)],
    [("client-id", "ledger")],
    [("client-id", None)],
)
TOGETHER = (
    ("ada", "ledger"),
    ("ada", "ledger"),
    ("ada", None),
    ("ada", "ledger"),
    ("ada", "ledger"),
    ("ada", None),
    (None, "ledger"),
    (None, "ledger"),
)


def change(*parts: tuple[str, str | None], **values: float | None) -> QuotaChange:
    return QuotaChange(entity=entity_of(parts), values=values)


def with_quotas(*changes: QuotaChange) -> ClientQuotas:
    quotas = ClientQuotas()
    quotas.alter(changes)()
    return quotas


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_most_particular_quota_holds(first: int) -> None:
    quotas = with_quotas(
        *(
            change(*parts, producer_byte_rate=at + 1)
            for at, parts in enumerate(ORDER)
            if at >= first
        )
    )
    limit = quotas.limit(RATE, "ada", "ledger")
    assert limit is not None
    assert limit == (first + 1, TOGETHER[first])


def test_a_quota_of_somebody_else_does_not_hold() -> None:
    quotas = with_quotas(change(("user", "bob"), producer_byte_rate=1))
    assert quotas.limit(RATE, "ada", "ledger") is None


def test_a_more_particular_entity_without_that_quota_does_not_hide_it() -> None:
    quotas = with_quotas(
        change(("user", "ada"), consumer_byte_rate=1),
        change(("client-id", None), producer_byte_rate=2),
    )
    limit = quotas.limit(RATE, "ada", "ledger")
    assert limit is not None
    assert limit.rate == 2


def test_what_is_removed_is_gone_and_an_entity_without_quotas_too() -> None:
    quotas = with_quotas(change(("user", "ada"), producer_byte_rate=1, consumer_byte_rate=2))
    quotas.alter([change(("user", "ada"), producer_byte_rate=None)])()
    assert list(quotas.values.values()) == [{"consumer_byte_rate": 2}]
    quotas.alter([change(("user", "ada"), consumer_byte_rate=None)])()
    assert not quotas.values


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, 1.5])
def test_no_quota_is_zero_or_less_or_half_a_byte(value: float) -> None:
    quotas = ClientQuotas()
    good = change(("user", "ada"), producer_byte_rate=10)
    with pytest.raises(RequestError) as refused:
        quotas.alter([good, change(("user", "bob"), producer_byte_rate=value)])
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert not quotas.values


@pytest.mark.parametrize("key", ["no_such", "controller_mutation_rate", "connection_creation_rate"])
def test_only_what_is_limited_here_can_be_set(key: str) -> None:
    with pytest.raises(RequestError, match=key):
        with_quotas(change(("user", "ada"), **{key: 1.0}))


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [("ip", "127.0.0.1")],
        [("user", "")],
        [("user", "ada"), ("user", None)],
        [("client-id", "\N{SNOWMAN}" * (NAME_BYTES_MAX // 3 + 1))],
    ],
)
def test_an_entity_is_a_user_or_a_client_or_both(parts: list[tuple[str, str | None]]) -> None:
    with pytest.raises(RequestError) as refused:
        entity_of(parts)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_the_number_of_entities_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "ENTITIES_MAX", 1)
    quotas = with_quotas(change(("user", "ada"), producer_byte_rate=1))
    quotas.alter([change(("user", "ada"), producer_byte_rate=2)])()
    with pytest.raises(RequestError) as refused:
        quotas.alter([change(("user", "bob"), producer_byte_rate=1)])
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


def test_they_come_back_from_a_snapshot() -> None:
    quotas = with_quotas(
        *(change(*parts, producer_byte_rate=at + 1) for at, parts in enumerate(ORDER))
    )
    assert ClientQuotas.of(quotas.body()).values == quotas.values
