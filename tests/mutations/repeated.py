"""What keeps a small request from having an answer as large as memory."""

from tests.mutations import Mutation

_TEST = "tests/broker/handlers/test_repeated.py::test_what_is_named_again_is_answered_once"

MUTATIONS = (
    Mutation(
        name="what is named again is answered once",
        file="broker/steps.py",
        old="        first.setdefault(of(element), element)\n",
        new="        first[len(first)] = element\n",
        killed_by=_TEST,
    ),
    Mutation(
        name="a group that is named again is described once",
        file="broker/handlers/describe_groups.py",
        old="distinct(request.groups)",
        new="request.groups",
        killed_by=_TEST,
    ),
    Mutation(
        name="the producers of a partition that is named again are described once",
        file="broker/handlers/describe_producers.py",
        old="            answered.add((topic.name, index))\n",
        new="",
        killed_by="tests/broker/handlers/test_repeated.py::"
        "test_the_producers_of_a_partition_are_described_once",
    ),
)
