"""Which replicas a broker opens, and when it gives one up."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from errno import EIO, EMFILE
from functools import partial
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any, Final

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.broker.clusters import wait_until
from tests.broker.handlers.producing import batch, produce, request
from tests.broker.nodes import open_node
from tidemark.broker.metadata import hosted_files
from tidemark.broker.metadata import hosting as hosting_module
from tidemark.broker.metadata.hosted_files import HostedFiles
from tidemark.broker.metadata.hosting import Hosting
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.node import Node
from tidemark.broker.replicas.checkpoints import Captured
from tidemark.broker.replicas.opening import open_replicas
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.raft.group import Group
from tidemark.partitions.replication.known_leaders import NOT_KNOWN
from tidemark.partitions.replication.peer_messages import GroupBeat
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import Assignment, TopicMetadata
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.journal.blocks import Lsn
from tidemark.partitions.storage.left_groups import leave, left_epochs
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.state_db import PartitionKey, StateDb
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset

ONE, TWO = map(NodeId, (1, 2))
NOWHERE: Final[Mapping[int, Assignment]] = MappingProxyType({})


def hosting_of(node: Node) -> Hosting:
    return node.topics._hosting


def held_by(
    topic: Topic,
    *assignments: Assignment,
    wanted: Mapping[int, Assignment] = NOWHERE,
    leaving: Mapping[int, Assignment] = NOWHERE,
    observers: Mapping[int, Assignment] = NOWHERE,
) -> Topic:
    metadata = replace(
        topic.metadata,
        assignments=assignments,
        wanted=wanted,
        leaving=leaving,
        observers=observers,
    )
    return replace(topic, metadata=metadata)


async def test_who_holds_a_partition_by_a_wish_opens_it_without_a_vote(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
    waves = held_by(
        topic,
        (ONE, TWO),
        (TWO,),
        (TWO,),
        (TWO,),
        (TWO,),
        wanted={1: (ONE,)},
        leaving={2: (ONE,)},
        observers={3: (ONE,)},
    )
    specs = waves.specs(ONE)
    assert [spec.partition for spec in specs] == [0, 1, 2, 3]
    assert specs[1].voters == (TWO,), "who votes is as it was before"
    assert [spec.partition for spec in waves.specs(ONE, without={0, 1})] == [2, 3]


async def test_nothing_is_given_up_before_the_metadata_are_current(tmp_path: Path) -> None:
    """A start applies old commands: one takes the replica away, and a later one gives it back."""
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=2))
        hosting = hosting_of(node)
        elsewhere = held_by(topic, (ONE,), (TWO,))
        hosting._is_current = False
        hosting.rehost(elsewhere)
        assert set(hosting.by_partition(topic.id)) == {0, 1}
        hosting.rehost(topic)
        hosting._is_current = True
        hosting.rehost(topic)
        assert set(hosting.by_partition(topic.id)) == {0, 1}


async def test_a_voter_of_a_wish_that_is_still_to_be_heard_of_is_not_given_up(
    tmp_path: Path,
) -> None:
    """A command takes the replica away, and a later one, which its leader has heard of and this
    broker has not, has made a voter of it again."""
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        hosting = hosting_of(node)
        replica = hosting.by_partition(topic.id)[0]
        version = node.topics._cluster.state.version
        replica.member.tell(partial(Group.change_config, voters=(ONE,), version=version))
        await wait_until(lambda: replica.member.is_serving)
        assert replica.member.group.config.version == version
        hosting.rehost(held_by(topic, (TWO,)))
        assert set(hosting.by_partition(topic.id)) == {0}
        hosting._version = lambda: version + 1
        hosting.rehost(held_by(topic, (TWO,)))
        assert not hosting.by_partition(topic.id)


async def test_nothing_is_made_before_the_metadata_are_current(tmp_path: Path) -> None:
    """By an old state of them: what it says is here was given up since, and what it promised is
    forgotten."""
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        hosting = hosting_of(node)
        hosting.rehost(held_by(topic, (TWO,)))
        await hosting.wait_settled(topic.id)
        hosting._is_current = hosting._may_make = False
        hosting.rehost(held_by(topic, (TWO,), wanted={0: (ONE, TWO)}))
        await hosting._passed.wait()
        assert not hosting.by_partition(topic.id)
        assert not (tmp_path / "waves-0").exists()
        await hosting.be_current(lambda: node.topics._cluster.state)
        await hosting.wait_settled(topic.id)
        assert set(hosting.by_partition(topic.id)) == {0}


async def test_a_start_waits_but_a_moment_for_what_was_deleted_meanwhile_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, look = Event(), HostedFiles._look

    def look_slowly(self: HostedFiles) -> object:
        slow.wait(10)
        return look(self)

    monkeypatch.setattr(HostedFiles, "_look", look_slowly)
    async with open_node(tmp_path) as node:
        hosting = hosting_of(node)
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        assert set(hosting.by_partition(topic.id)) == {0}
        assert not hosting._files.is_swept
        slow.set()
        await wait_until(lambda: hosting._files.is_swept)


async def test_what_is_given_up_goes_with_its_files_and_what_is_known_of_it(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=2))
        hosting = hosting_of(node)
        gone = hosting.by_partition(topic.id)[1]
        hosting.rehost(held_by(topic, (ONE,), (TWO,)))
        assert set(hosting.by_partition(topic.id)) == {0}
        assert not gone.is_available
        await hosting.wait_settled(topic.id)
        assert not (tmp_path / "waves-1").exists()
        assert (tmp_path / "waves-0").exists()
        state = hosting._services.state
        known = await trio.to_thread.run_sync(state.partition_states)
        assert {key.partition for key in known if key.topic_id == topic.id} == {0}
        await wait_until(lambda: not list(tmp_path.glob("*-delete")))


async def test_what_is_wanted_again_is_opened_anew_after_its_old_files_have_gone(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        hosting = hosting_of(node)
        first = hosting.by_partition(topic.id)[0]
        (tmp_path / "waves-0" / "mark").touch()
        epoch = first.member.epoch
        hosting.rehost(held_by(topic, (TWO,)))
        hosting.rehost(held_by(topic, (TWO,), wanted={0: (ONE, TWO)}))
        await hosting.wait_settled(topic.id)
        second = hosting.by_partition(topic.id)[0]
        assert second is not first
        assert not (tmp_path / "waves-0" / "mark").exists()
        assert not second.member.group.is_voter
        assert second.member.group.left_in == second.member.epoch == epoch, "it binds it still"


async def test_a_checkpoint_does_not_bring_back_what_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had captured the replica before, and writes while that one's row is removed."""
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        hosting = hosting_of(node)
        services = hosting._services
        checkpoints, may_write = services.checkpoints, Event()
        write = checkpoints._sync_and_record

        def write_late(
            captured: Sequence[Captured], left: Mapping[PartitionKey, Epoch], mark: Lsn | None
        ) -> None:
            may_write.wait(10)
            write(captured, left, mark)

        monkeypatch.setattr(checkpoints, "_sync_and_record", write_late)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checkpoints.save, list(hosting))
            await wait_until(lambda: checkpoints._saving.locked())
            hosting.rehost(held_by(topic, (TWO,)))
            await wait_until(lambda: bool(list(tmp_path.glob("*-delete"))))
            await trio.sleep(0.1)
            may_write.set()
        await hosting.wait_settled(topic.id)
        assert topic.id not in {key.topic_id for key in services.state.partition_states()}
        assert topic.id in {key.topic_id for key in left_epochs(services.state)}


async def test_a_sync_that_fails_while_a_replica_is_made_ends_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(files: OsFiles, path: str) -> None:
        raise SyncFailed(EIO, "Input/output error")

    told: list[OSError] = []
    async with open_node(tmp_path) as node:
        disk = hosting_of(node)._services.disk
        monkeypatch.setattr(type(disk), "fail", lambda _, error: told.append(error))
        monkeypatch.setattr(OsFiles, "sync_directory", fail)
        with pytest.raises(RequestError, match="Input/output error"):
            await node.topics.create(NewTopic(name="waves", partitions=1))
        monkeypatch.undo()
    assert [type(error) for error in told] == [SyncFailed]


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_sync_that_fails_while_a_replica_goes_ends_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_deleted: bool
) -> None:
    """Of a topic that is deleted, or a partition that is other brokers' now."""

    def fail(files: OsFiles, path: str) -> None:
        raise SyncFailed(EIO, "Input/output error")

    told: list[OSError] = []
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        hosting = hosting_of(node)
        monkeypatch.setattr(
            type(hosting._services.disk), "fail", lambda _, error: told.append(error)
        )
        monkeypatch.setattr(OsFiles, "sync_directory", fail)
        if is_deleted:
            hosting.remove(topic.metadata)
        else:
            hosting.rehost(held_by(topic, (TWO,)))
        with pytest.raises(RequestError, match="Input/output error"):
            await hosting.wait_settled(topic.id)
        monkeypatch.undo()
    assert SyncFailed in {type(error) for error in told}


async def test_what_could_not_be_opened_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There were no descriptors left, say. The topic is in the metadata, and nobody asks again."""
    monkeypatch.setattr(hosting_module, "RETRY_SECONDS", 0.1)
    refused = [OSError(EMFILE, "Too many open files")] * 2

    async def open_later(*args: Any, **options: Any) -> list[Replica]:  # Any: as they come
        if refused:
            raise refused.pop()
        return await open_replicas(*args, **options)

    monkeypatch.setattr("tidemark.broker.metadata.hosting.open_replicas", open_later)
    async with open_node(tmp_path) as node:
        with pytest.raises(RequestError, match="Too many open files"):
            await node.topics.create(NewTopic(name="waves", partitions=1))
        topic = node.topics.get("waves")
        assert topic is not None
        await wait_until(lambda: bool(hosting_of(node).by_partition(topic.id)))
        assert not refused
        await hosting_of(node).wait_settled(topic.id)


def leaderless(node: Node) -> list[str]:
    driver = node.topics._services.driver
    return [each.name for each in driver.node.concerns._leaderless]


async def test_a_topic_that_is_deleted_before_it_is_led_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody will ever lead it; and topics are opened one after the other."""
    async with open_node(tmp_path) as node, trio.open_nursery() as tasks:
        with monkeypatch.context() as patched:
            patched.setattr(Group, "campaign", lambda _: None)
            tasks.start_soon(node.topics.create, NewTopic(name="waves", partitions=1))
            await wait_until(lambda: leaderless(node) == ["waves-0"])
            await wait_all_tasks_blocked(0.05)
            topic = node.topics.get("waves")
            assert topic is not None
            hosting_of(node).remove(topic.metadata)
        with trio.fail_after(20):
            await node.topics.create(NewTopic(name="others", partitions=1))
        await wait_until(lambda: not list(tmp_path.glob("waves-0")))
        assert (await produce(node, request(batch(), topic="others"))).base_offset == 0


async def test_a_partition_for_which_a_start_had_no_descriptor_is_served_once_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting_module, "RETRY_SECONDS", 0.1)
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="t", partitions=2))
        for partition in (0, 1):
            await produce(node, request(batch(), partition=partition))
    has_descriptors, open_log = False, Log.open

    def open_later(files: Files, directory: str, *args: Any, **options: Any) -> Log:  # as they come
        if directory.endswith("/t-0") and not has_descriptors:
            raise OSError(EMFILE, "Too many open files")
        return open_log(files, directory, *args, **options)

    monkeypatch.setattr(Log, "open", open_later)
    async with open_node(tmp_path) as node:
        refused = await produce(node, request(batch()))
        assert ErrorCode(refused.error_code).retriable
        assert (await produce(node, request(batch(), partition=1))).base_offset == 1
        has_descriptors = True
        await wait_until(lambda: node.topics.replica("t", 0) is not None)
        assert (await produce(node, request(batch()))).base_offset == 1


async def test_what_is_recorded_of_strays_is_forgotten_as_soon_as_the_disk_takes_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting_module, "RETRY_SECONDS", 0.1)
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", partitions=1))
        stray = next(iter(hosting_of(node))).key
    refused = [StorageError("database or disk is full")] * 2

    def forget_later(state: StateDb, left: Mapping[PartitionKey, Epoch]) -> None:
        if refused:
            raise refused.pop()
        leave(state, left)

    monkeypatch.setattr(hosted_files, "leave", forget_later)
    monkeypatch.setattr(HostedFiles, "_belongs", lambda _, key, __: key != stray)
    async with open_node(tmp_path) as node:
        await wait_until(lambda: hosting_of(node)._files.is_swept)
        assert not refused
        assert stray not in hosting_of(node)._services.state.partition_names()


async def test_the_directory_of_a_later_topic_is_not_taken_for_one_that_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1. A partition is given up, and state.db does not take it. 2. Its topic is deleted, and made
    anew. 3. What was given up is tried again: the name is another partition's now."""
    is_full = True

    def forget(state: StateDb, left: Mapping[PartitionKey, Epoch]) -> None:
        if is_full:
            raise StorageError("database or disk is full")
        leave(state, left)

    monkeypatch.setattr(hosted_files, "leave", forget)
    async with open_node(tmp_path) as node:
        first = await node.topics.create(NewTopic(name="waves", partitions=1))
        hosting = hosting_of(node)
        hosting.rehost(held_by(first, (TWO,)))
        with pytest.raises(RequestError, match="disk is full"):
            await hosting.wait_settled(first.id)
        await node.topics.delete(first)
        second = await node.topics.create(NewTopic(name="waves", partitions=1))
        is_full = False
        hosting._is_asked.set()
        await hosting._passed.wait()
        assert hosting.by_partition(second.id)[0].is_available
        assert (tmp_path / "waves-0").exists()


async def test_who_led_a_topic_that_is_deleted_is_forgotten_where_nothing_of_it_was_held(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        hosting = hosting_of(node)
        hosting.rehost(held_by(topic, (TWO,)))
        await hosting.wait_settled(topic.id)
        known = hosting._services.driver.node.known
        key = PartitionKey(topic.id, 0)
        known.hear(TWO, GroupBeat(key, Epoch(7), True, ORIGIN, Offset(0)))
        assert known.get(key).node == TWO
        await node.topics.delete(topic)
        assert known.get(key) is NOT_KNOWN
        assert topic.id not in hosting._may_be_here


async def test_partitions_of_which_nothing_was_said_are_not_looked_at_again(tmp_path: Path) -> None:
    """Thousands of them may be moved, a few at a time."""
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=3))
        hosting = hosting_of(node)
        elsewhere = held_by(topic, (TWO,), (TWO,), (TWO,))
        hosting.rehost(elsewhere, (1,))
        assert set(hosting.by_partition(topic.id)) == {0, 2}
        hosting.rehost(elsewhere)
        assert not hosting.by_partition(topic.id)
        await hosting.wait_settled(topic.id)


async def test_many_topics_that_are_deleted_wait_for_the_disk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[int]()
    forget = HostedFiles.forget_deleted

    async def counted(files: HostedFiles, renamed: Iterable[TopicMetadata]) -> None:
        some = list(renamed)
        waits.append(len(some))
        await forget(files, some)

    async with open_node(tmp_path) as node:
        names = [f"waves{number}" for number in range(5)]
        topics = [await node.topics.create(NewTopic(name=name, partitions=1)) for name in names]
        hosting = hosting_of(node)
        monkeypatch.setattr(HostedFiles, "forget_deleted", counted)
        for topic in topics:
            hosting.remove(topic.metadata)
        for topic in topics:
            await hosting.wait_settled(topic.id)
        assert waits == [5]
    assert not {f"{name}-0" for name in names} & {*os.listdir(tmp_path)}


async def test_what_is_deleted_while_a_start_looks_for_strays_is_not_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both renamed its directories at once, and one found them gone: the deletion failed."""
    found = list[Mapping[PartitionKey, str]]()
    monkeypatch.setattr(
        HostedFiles, "_forget_strays", lambda _, strays, there: found.append(strays)
    )
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        hosting = hosting_of(node)
        hosting.remove(topic.metadata)
        found.clear()
        without_it = ClusterState()
        await hosting._sweep(lambda: without_it)
        assert found == [{}]
        await hosting.wait_settled(topic.id)
