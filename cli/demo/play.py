"""The demo from the first client to the verdict: load, watch, story and screen put together."""

from collections.abc import Mapping
from typing import Final

import trio

from tidemark.cli.demo.ledger import Ledger, Outcome
from tidemark.cli.demo.load import Load, running
from tidemark.cli.demo.screen import Scene, Teller, shown
from tidemark.cli.demo.story import Story, wait_for_cluster
from tidemark.cli.demo.watch import Watch
from tidemark.client import open_client
from tidemark.testing.process_cluster import ProcessCluster

TOPIC: Final = "demo"
PARTITIONS: Final = 3
CONFIGS: Final[Mapping[str, str]] = {"min.insync.replicas": "2"}


async def play(cluster: ProcessCluster, seconds: float, rate: float, *, plain: bool) -> Outcome:
    """Raises `DemoFailed`, maybe within a group, if the cluster does not do what it should."""
    teller = Teller(trio.current_time())
    ledger = Ledger(range(PARTITIONS))
    # Two clients: what is seen must not depend on what the load's has found out, nor help it.
    async with (
        open_client(cluster.bootstrap, client_id="demo-load") as client,
        open_client(cluster.bootstrap, client_id="demo-watch") as watching,
        trio.open_nursery() as nursery,
    ):
        replicas = len(cluster.brokers)
        await wait_for_cluster(watching.admin, replicas)
        teller.say(f"{replicas} brokers are a cluster")
        await client.admin.create_topic(
            TOPIC, partitions=PARTITIONS, replication_factor=replicas, configs=CONFIGS
        )
        teller.say(f"topic {TOPIC}: {PARTITIONS} partitions, each on {replicas} brokers")
        watch = Watch(watching.admin, TOPIC)
        nursery.start_soon(watch.look_until_cancelled)
        story = Story(cluster, watch, ledger, teller.say)
        scene = Scene(cluster=cluster, story=story, watch=watch, ledger=ledger)
        load = Load(TOPIC, ledger, rate=rate)
        async with (
            shown(scene, teller, plain=plain),
            running(load, client),
        ):
            # A tenth of a second's records are under way, or came between two looks.
            await story.play(seconds, lag_max=max(1, int(rate / 10)))
            pause_seconds = ledger.longest_pause(trio.current_time())
            teller.say("no more is sent; what is under way is waited for")
        nursery.cancel_scope.cancel()
    return ledger.close(pause_seconds)
