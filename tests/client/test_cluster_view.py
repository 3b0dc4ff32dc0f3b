import uuid

from tidemark.client.cluster import ClusterView
from tidemark.client.descriptions import BrokerDescription
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import metadata
from tidemark.protocol.types import Epoch, NodeId, TopicPartition

ID = uuid.UUID(int=7)
OTHER_ID = uuid.UUID(int=8)
AT = TopicPartition("t", 0)


def answer(
    *leaders: tuple[int, int],
    topic_id: uuid.UUID = ID,
    error: ErrorCode = ErrorCode.NONE,
    nodes: tuple[int, ...] = (1, 2),
) -> metadata.MetadataResponse:
    """An answer about topic `t`, its partitions given as (leader, epoch)."""
    return metadata.MetadataResponse(
        brokers=[
            metadata.MetadataResponseBroker(node_id=node, host=f"h{node}", port=9092)
            for node in nodes
        ],
        cluster_id="c",
        controller_id=1,
        topics=[
            metadata.MetadataResponseTopic(
                name="t",
                topic_id=topic_id,
                error_code=error,
                partitions=[
                    metadata.MetadataResponsePartition(
                        partition_index=index,
                        leader_id=leader,
                        leader_epoch=epoch,
                        replica_nodes=[1, 2],
                        isr_nodes=[1],
                    )
                    for index, (leader, epoch) in enumerate(leaders)
                ],
            )
        ],
    )


def leader_of(view: ClusterView, partition: int = 0) -> int | None:
    leader = view.leader(TopicPartition("t", partition))
    return None if leader is None else leader.node_id


def test_the_leader_is_found_by_partition() -> None:
    view = ClusterView().updated(answer((1, 0), (2, 0)))
    assert (leader_of(view, 0), leader_of(view, 1), leader_of(view, 2)) == (1, 2, None)


def test_a_partition_without_leader_has_none_and_so_has_one_whose_leader_is_not_listed() -> None:
    assert leader_of(ClusterView().updated(answer((-1, 0)))) is None
    assert leader_of(ClusterView().updated(answer((2, 0), nodes=(1,)))) is None


def test_metadata_from_a_broker_that_lags_behind_does_not_set_a_leader_back() -> None:
    view = ClusterView().updated(answer((1, 5))).updated(answer((2, 4)))
    assert leader_of(view) == 1
    assert leader_of(view.updated(answer((2, 6)))) == 2


def test_a_topic_made_anew_begins_with_its_own_epochs() -> None:
    view = ClusterView().updated(answer((1, 5))).updated(answer((2, 0), topic_id=OTHER_ID))
    assert leader_of(view) == 2


def test_a_topic_that_is_gone_leaves_the_view_with_the_reason() -> None:
    gone = answer(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    view = ClusterView().updated(answer((1, 0))).updated(gone)
    assert "t" not in view.topics
    assert view.errors == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert view.updated(answer((1, 0))).errors == {}


def test_a_forgotten_topic_is_as_if_never_asked_for() -> None:
    view = ClusterView().updated(answer((1, 5)))
    assert leader_of(view.without("t").updated(answer((2, 0)))) == 2


def test_topics_that_an_answer_does_not_name_stay() -> None:
    nothing = metadata.MetadataResponse(brokers=[], cluster_id="c", controller_id=-1, topics=[])
    view = ClusterView().updated(answer((1, 0))).updated(nothing)
    assert view.partitions_of(["t", "u"]) == [TopicPartition("t", 0)]
    assert view.controller_id is None


def test_a_broker_may_say_who_leads_instead_but_nothing_old() -> None:
    view = ClusterView().updated(answer((1, 4), (1, 4)))
    other = BrokerDescription(node_id=NodeId(3), host="h3", port=9092)
    told = view.led_by(AT, other, Epoch(5))
    assert told.leader(AT) == other
    assert told.leader(TopicPartition("t", 1)) == view.leader(AT)
    assert view.led_by(AT, other, Epoch(4)) is view
    assert view.led_by(TopicPartition("t", 9), other, Epoch(5)) is view
    assert told.updated(answer((1, 4), (1, 4), nodes=(1, 3))).leader(AT) == other
    assert told.updated(answer((1, 6), (1, 4))).leader(AT) == view.leader(AT)
