"""What keeps records for a topic that is gone out of another one of its name."""

from tests.mutations import Mutation

_PRODUCE = "broker/handlers/produce_runs.py"
_KNOWN = "tests/broker/handlers/test_produce_known.py::"

MUTATIONS = (
    Mutation(
        name="whose an id is is looked up for each request",
        file=_PRODUCE,
        old="    topic = node.topics.by_id(alike.topic_id)\n",
        new="    old = _name_of.__dict__.setdefault\n"
        "    topic = old(str(alike.topic_id), node.topics.by_id(alike.topic_id))\n",
        killed_by=f"{_KNOWN}test_by_its_id_a_topic_that_was_made_again_is_not_written_to",
    ),
    Mutation(
        name="the brokers' own topics are not written to by their ids either",
        file=_PRODUCE,
        old='    return "" if topic is None or topic.name in INTERNAL_TOPICS else topic.name\n',
        new='    return "" if topic is None else topic.name\n',
        killed_by=f"{_KNOWN}test_the_brokers_own_topics_are_not_written_to_by_their_ids_either",
    ),
    Mutation(
        name="a topic that nobody has an id of has no name",
        file="broker/handlers/topic_ids.py",
        old='name="" if topic is None else topic.name',
        new='name="orders" if topic is None else topic.name',
        killed_by="tests/broker/handlers/test_group_offsets.py::"
        "test_by_ids_a_topic_that_was_made_again_is_another_one",
    ),
)
