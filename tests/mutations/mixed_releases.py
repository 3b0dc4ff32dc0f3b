"""Brokers of several releases in one cluster: what they say to each other, and in the metadata."""

from tests.mutations import Mutation

_VERSIONS = "tests/broker/peers/test_versions.py"
_METADATA = "tests/broker/test_metadata_versions.py"

MUTATIONS = (
    Mutation(
        name="who asks in another version of the protocol between brokers is not let in",
        file="broker/peers/network.py",
        old="if isinstance(request, JoinRequest) and not is_spoken(header.version):",
        new="if False:",
        killed_by=f"{_VERSIONS}::test_a_join_of_another_version_is_refused_and_not_misread",
    ),
    Mutation(
        name="brokers without a version in common do not talk to each other",
        file="broker/peers/hello.py",
        old="    if not OWN.has_common(theirs):\n",
        new="    if False:\n",
        killed_by=f"{_VERSIONS}::test_a_hello_of_another_version_is_refused_before_anything_else_is_looked_at",
    ),
    Mutation(
        name="a broker of the cluster that nobody understands yet waits, and does not end",
        file="broker/metadata/reception.py",
        old="answered.error_code == ErrorCode.INVALID_REQUEST:",
        new="False:",
        killed_by="tests/broker/test_reception.py::test_another_version_is_no_refusal_for_good",
    ),
    Mutation(
        name="who asks to join is understood by whoever speaks one of its versions",
        file="broker/peers/joining.py",
        old="if answered.error_code != ErrorCode.INVALID_REQUEST:\n                break",
        new="if True:\n                break",
        killed_by=f"{_VERSIONS}"
        "::test_a_join_is_understood_by_a_build_that_speaks_one_of_the_versions",
    ),
    Mutation(
        name="nothing is appended to the metadata that a broker which is there cannot read",
        file="broker/metadata/cluster_log.py",
        old="if version > FIRST_VERSION and (older := self._older_than(version)):",
        new="if version > FIRST_VERSION and (older := []):",
        killed_by=f"{_METADATA}"
        "::test_what_a_broker_of_an_older_release_cannot_follow_waits_until_it_is_upgraded",
    ),
    Mutation(
        name="of several topics, too, those are made that all can read",
        file="broker/metadata/cluster_log.py",
        old="[self._reads(decide) for decide in decisions]",
        new="decisions",
        killed_by="tests/broker/test_cluster_log.py"
        "::test_of_several_topics_those_are_made_that_all_can_read",
    ),
    Mutation(
        name="a broker that is away keeps nothing from being changed",
        file="broker/metadata/open_metadata.py",
        old="self.brokers.is_alive(node) and spoken.get",
        new="spoken.get",
        killed_by=f"{_METADATA}::test_a_broker_of_an_older_release_that_is_away_is_not_waited_for",
    ),
    Mutation(
        name="a broker that has been upgraded is known to be",
        file="broker/peers/link.py",
        old="        self.version = version\n",
        new="        self.version = self.version or version\n",
        killed_by=f"{_METADATA}"
        "::test_what_a_broker_of_an_older_release_cannot_follow_waits_until_it_is_upgraded",
    ),
)
