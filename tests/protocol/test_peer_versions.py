"""Brokers of two builds that say they speak one version read each other's messages alike."""

import hashlib
import json
from itertools import pairwise

import pytest

from tests.golden import messages, peer_versions
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.messages.peer.versions import FIRST_VERSION, GREETING_VERSION, LAST_VERSION
from tidemark.protocol.peer_registry import PEER_APIS
from tidemark.protocol.schema import Message

HOW = """\
A message between brokers has changed, or what the metadata may hold, or the newest version of one
of Kafka's requests that brokers ask each other. Brokers of another build would misread it. One of
two:
- if a release has spoken version {last}: raise LAST_VERSION in protocol/messages/peer/versions.py,
  and FIRST_VERSION with it unless this build speaks both; run `python -m tests.golden.messages`;
  A new command, or a config of topics or groups, has its version in `_SINCE` of
  partitions/state_machines/cluster_versions.py. Brokers of the version before have to be asked
  Kafka's requests as they know them;
- if none has: leave the number, and say in the CHANGELOG that builds since the last release differ.
Then add to the end of tests/golden/peer_versions.json:
  {{"version": …, "digest": "{digest}", "what": "…"}}"""

GREETINGS: dict[type[Message], str] = {
    HelloRequest: "b215c0d39ccea209",
    HelloResponse: "a739e5f9ed1ce7c5",
    JoinRequest: "1ad40e04a16589d4",
    JoinResponse: "712c1845d4e06283",
}
"""With what a digest of its examples has been since the first build."""


def test_a_message_that_changes_is_recorded_with_its_version() -> None:
    last = peer_versions.recorded()[-1]
    digest = peer_versions.digest()
    assert (last.version, last.digest) == (LAST_VERSION, digest), HOW.format(
        last=last.version, digest=digest
    )


def test_versions_are_recorded_one_after_the_other() -> None:
    rows = peer_versions.recorded()
    assert all(0 <= after.version - before.version <= 1 for before, after in pairwise(rows))
    assert len({row.digest for row in rows}) == len(rows)


def test_all_messages_but_the_greetings_have_the_versions_that_are_spoken() -> None:
    for api in PEER_APIS.values():
        for cls in (api.request, api.response):
            if cls is not None and cls not in GREETINGS:
                assert (cls.first_version, cls.last_version) == (FIRST_VERSION, LAST_VERSION)


@pytest.mark.parametrize(
    ("cls", "digest"), GREETINGS.items(), ids=[cls.__name__ for cls in GREETINGS]
)
def test_greetings_never_change(cls: type[Message], digest: str) -> None:
    """Those of a build that has no version in common with this one are still read."""
    golden = json.loads(messages.FILE.read_text())
    assert cls.first_version == GREETING_VERSION
    for version in range(cls.first_version, cls.last_version + 1):
        examples = "".join(golden[f"{cls.__name__} {version}"])
        assert hashlib.sha256(examples.encode()).hexdigest()[:16] == digest
