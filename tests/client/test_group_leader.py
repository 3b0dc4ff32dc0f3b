"""What a member that leads its group shares out, with a real broker's metadata."""

from random import Random

from tidemark.client import Client, ClientSettings
from tidemark.client.addresses import parse_bootstrap
from tidemark.client.group_leader import GroupLeader
from tidemark.client.network import open_network
from tidemark.protocol.consumer_protocol import Subscription, encode_subscription
from tidemark.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from tidemark.testing import BlockingCluster


async def test_a_topic_that_is_made_or_grows_is_to_be_shared_out_anew(
    tidemark_session: BlockingCluster, client: Client, topic: str
) -> None:
    subscription = Subscription(topics=(topic,), owned=frozenset(), generation=1)
    member = JoinGroupResponseMember(member_id="m", metadata=encode_subscription(subscription))
    joined = JoinGroupResponse(protocol_name="range", leader="m", member_id="m", members=[member])
    bootstrap = parse_bootstrap(tidemark_session.bootstrap)
    async with open_network(bootstrap, ClientSettings(), Random(1)) as network:
        leader = GroupLeader(network, "g")
        counts = []
        for partitions in (0, 2, 5):
            if partitions == 2:
                await client.admin.create_topic(topic, partitions=2)
            elif partitions:
                await client.admin.create_partitions(topic, partitions)
            await network.refresh()
            assert leader.is_outdated() == bool(partitions)
            counts.append(len((await leader.assign(joined))["m"]))
            assert not leader.is_outdated()
    assert counts == [0, 2, 5]
