"""Making a consumer: its fetches, its membership of a group, and the tasks that both need."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from tidemark.client.background import open_background
from tidemark.client.committing import Committer
from tidemark.client.consumer import Consumer
from tidemark.client.consumer_settings import ConsumerSettings
from tidemark.client.group import GroupMember
from tidemark.client.network import Network
from tidemark.client.pool import open_pool
from tidemark.client.readings import Readings

_CLOSE_SECONDS: Final = 5.0
"""How long closing may wait for the last commit and for saying goodbye to the group."""


@asynccontextmanager
async def open_consumer(network: Network, settings: ConsumerSettings) -> AsyncIterator[Consumer]:
    """See `Client.consumer`."""
    async with (
        open_pool(network.settings, network.bootstrap) as pool,
        open_pool(network.settings, network.bootstrap) as member_pool,
        open_background() as nursery,
    ):
        readings = Readings(network, pool, nursery, settings.fetch)
        consumer = Consumer(network, readings, settings)
        group, member, committer = settings.group, None, None
        if group is not None:
            if settings.is_shared:
                member = GroupMember(network, member_pool, group, settings.topics, consumer)
            committer = Committer(network, group.group, member)
        with network.listening(readings.route), network.using(readings.topics):
            nursery.start_soon(readings.find_leaders_until_cancelled)
            await consumer.start(committer)
            is_done = False
            try:
                async with open_background() as tasks:
                    _start_tasks(tasks, consumer, member, settings)
                    yield consumer
                is_done = True
            finally:
                with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await consumer.close(is_done=is_done)
                    if member is not None:
                        await member.leave()


def _start_tasks(
    nursery: trio.Nursery,
    consumer: Consumer,
    member: GroupMember | None,
    settings: ConsumerSettings,
) -> None:
    if member is not None:
        nursery.start_soon(member.take_part_until_cancelled)
    elif settings.topics and not settings.until_end:
        nursery.start_soon(consumer.find_new_partitions_until_cancelled)
    if settings.group is not None and settings.auto_commit_seconds is not None:
        nursery.start_soon(consumer.commit_until_cancelled, settings.auto_commit_seconds)
