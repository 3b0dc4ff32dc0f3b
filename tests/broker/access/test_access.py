"""Who is a super user, what holds without ACLs, and what is remembered."""

from pathlib import Path

import pytest

from tests.broker.access.conftest import allowed
from tests.broker.fake_cluster import FollowedCluster
from tests.broker.nodes import open_node
from tidemark.broker.access import access as module
from tidemark.broker.access.access import Access
from tidemark.broker.access.gated import GatedHandlers
from tidemark.broker.config import Address
from tidemark.broker.network.requests import Session
from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import AlterAcls
from tidemark.protocol.acls import Operation, Permission, ResourceType

READ, TOPIC = Operation.READ, ResourceType.TOPIC


class Cluster(FollowedCluster):
    def alter(self, *added: Acl, removed: tuple[Acl, ...] = ()) -> None:
        version = self.state.version
        self.apply(AlterAcls(at_version=version, added=added, removed=removed))


def access_of(cluster: Cluster, *super_users: str, otherwise: bool = False) -> Access:
    return Access(cluster, is_on=True, super_users=super_users, allows_without_acls=otherwise)


def session(user: str | None = "alice", host: str = "10.0.0.1") -> Session:
    return Session(
        connection_id=1, client_host=host, listener=Address("127.0.0.1", 9092), user=user
    )


def test_who_is_not_named_is_anonymous() -> None:
    cluster = Cluster()
    access = access_of(cluster)
    cluster.alter(allowed(READ, TOPIC, "t", user="ANONYMOUS"))
    assert access.may(session(None), READ, TOPIC, "t")
    assert not access.may(session("alice"), READ, TOPIC, "t")


def test_a_super_user_is_asked_for_by_its_whole_name() -> None:
    access = access_of(Cluster(), "User:root")
    assert access.may(session("root"), READ, TOPIC, "t")
    assert access.may_somewhere(session("root"), READ, TOPIC)
    assert not access.may(session("roo"), READ, TOPIC, "t")
    assert not access.may(session("User:root"), READ, TOPIC, "t")
    assert not access.may(session(None), READ, TOPIC, "t")


def test_what_no_acl_is_about_is_as_the_settings_say() -> None:
    cluster = Cluster()
    strict, lax = access_of(cluster), access_of(cluster, otherwise=True)
    asked = session(), READ, TOPIC, "t"
    assert (strict.may(*asked), lax.may(*asked)) == (False, True)
    assert (strict.may_somewhere(*asked[:3]), lax.may_somewhere(*asked[:3])) == (False, True)
    cluster.alter(allowed(READ, TOPIC, "t", user="bob"))
    assert not lax.may(*asked)


@pytest.mark.parametrize("host", ["10.0.0.1", "::ffff:10.0.0.1"])
def test_a_host_is_the_same_however_its_address_is_written(host: str) -> None:
    cluster = Cluster()
    access = access_of(cluster)
    cluster.alter(allowed(READ, TOPIC, "t")._replace(host="10.0.0.1"))
    assert access.may(session(host=host), READ, TOPIC, "t")
    assert access.may_somewhere(session(host=host), READ, TOPIC)
    assert not access.may(session(host="10.0.0.2"), READ, TOPIC, "t")
    assert not access.may(session(host=""), READ, TOPIC, "t")


def test_a_change_holds_for_who_has_asked_before() -> None:
    cluster = Cluster()
    access = access_of(cluster)
    acl = allowed(READ, TOPIC, "t")
    answers = [access.may(session(), READ, TOPIC, "t")]
    for added, removed in (((acl,), ()), ((), (acl,)), ((acl,), ())):
        before = access.revision
        cluster.alter(*added, removed=removed)
        assert access.revision != before
        answers.append(access.may(session(), READ, TOPIC, "t"))
    assert answers == [False, True, False, True]
    cluster.alter(acl._replace(permission=Permission.DENY))
    assert not access.may(session(), READ, TOPIC, "t")


def test_another_state_is_followed_though_it_has_changed_as_often() -> None:
    cluster = Cluster()
    access = access_of(cluster)
    cluster.alter(allowed(READ, TOPIC, "t"))
    assert access.may(session(), READ, TOPIC, "t")
    other = ClusterState()
    other.apply(AlterAcls(at_version=0, added=(allowed(READ, TOPIC, "u"),), removed=()))
    assert other.acls.revision == cluster.state.acls.revision
    cluster.state = other
    cluster.change()
    assert not access.may(session(), READ, TOPIC, "t")
    assert access.may(session(), READ, TOPIC, "u")


def test_other_changes_of_the_metadata_cost_nothing() -> None:
    cluster = Cluster()
    access = access_of(cluster)
    before = access.revision
    cluster.change()
    assert access.revision == before


def test_few_answers_are_remembered_and_none_about_what_has_a_long_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_REMEMBERED_MAX", 10)
    access = access_of(Cluster())
    for number in range(25):
        assert not access.may(session(), READ, TOPIC, f"{number}")
        assert not access.may(session(), READ, TOPIC, "n" * 30_000 + f"{number}")
        assert len(access._answers) <= 10
        assert all(len(asked[-1]) < 1_000 for asked in access._answers)


def test_without_an_authorizer_everybody_may_do_everything() -> None:
    cluster = Cluster()
    access = Access(cluster, is_on=False, super_users=(), allows_without_acls=False)
    assert access.may(session(None), READ, TOPIC, "t")
    assert access.may_somewhere(session(None), READ, TOPIC)
    assert cluster.follow == []


async def test_an_api_without_a_gate_is_not_served(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        handlers = GatedHandlers({18: lambda *_: None, 999: lambda *_: None}, node)
        assert list(handlers) == [18]
        assert 999 not in handlers
        with pytest.raises(KeyError):
            handlers[999]
