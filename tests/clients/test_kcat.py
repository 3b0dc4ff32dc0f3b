"""kcat, on an old librdkafka: what a shell script uses."""

import json
import shutil
import subprocess

import pytest

from tests.clients.samples import CODECS, COMPRESSIBLE
from tidemark.testing.process import BrokerProcess

pytestmark = pytest.mark.skipif(
    shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)"
)


def kcat(bootstrap: str, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run kcat against the broker; its standard output."""
    command = ["kcat", "-b", bootstrap, "-X", "broker.address.family=v4", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def consume(bootstrap: str, topic: str, *arguments: str) -> bytes:
    return kcat(bootstrap, "-C", "-t", topic, "-e", "-q", "-o", "beginning", *arguments)


def test_list_topics(bootstrap: str, topic: str) -> None:
    kcat(bootstrap, "-P", "-t", topic, stdin=b"x")
    listed = json.loads(kcat(bootstrap, "-L", "-J"))
    assert topic in [found["topic"] for found in listed["topics"]]
    assert bootstrap in [found["name"] for found in listed["brokers"]]


def test_produce_and_consume(bootstrap: str, topic: str) -> None:
    lines = b"one:first\ntwo:second\nthree:\n"
    kcat(bootstrap, "-P", "-t", topic, "-K:", "-p", "0", "-H", "h=1", "-Z", stdin=lines)
    got = consume(bootstrap, topic, "-f", "%o %k %S %s %h\\n", "-Z")
    assert got == b"0 one 5 first h=1\n1 two 6 second h=1\n2 three -1 NULL h=1\n"


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(bootstrap: str, topic: str, acks: str) -> None:
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-X", f"acks={acks}", stdin=b"a\nb\n")
    assert consume(bootstrap, topic) == b"a\nb\n"


@pytest.mark.parametrize("codec", CODECS)
def test_compression(bootstrap: str, topic: str, codec: str) -> None:
    data = b"\n".join(COMPRESSIBLE) + b"\n"
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-z", codec, stdin=data)
    assert consume(bootstrap, topic) == data


def test_idempotent_producer(bootstrap: str, topic: str) -> None:
    data = b"".join(b"%d\n" % number for number in range(1000))
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-X", "enable.idempotence=true", stdin=data)
    assert consume(bootstrap, topic) == data


def test_offsets_by_time(bootstrap: str, topic: str) -> None:
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", stdin=b"a\nb\n")
    stamp = consume(bootstrap, topic, "-f", "%T\\n").split()[0].decode()
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:{stamp}").decode() == f"{topic} [0] offset 0\n"


def test_group_reads(bootstrap: str, topic: str, group: str) -> None:
    kcat(bootstrap, "-P", "-t", topic, stdin=b"a\nb\nc\n")
    got = kcat(bootstrap, "-G", group, "-X", "auto.offset.reset=earliest", "-c", "3", "-q", topic)
    assert sorted(got.split()) == [b"a", b"b", b"c"]


def test_commits_survive_a_restart(own_broker: BrokerProcess, topic: str, group: str) -> None:
    earliest = ("-X", "auto.offset.reset=earliest", "-q", topic)
    kcat(own_broker.bootstrap, "-P", "-t", topic, "-p", "0", stdin=b"a\nb\n")
    assert kcat(own_broker.bootstrap, "-G", group, "-c", "2", *earliest) == b"a\nb\n"
    own_broker.kill()
    own_broker.start()
    kcat(own_broker.bootstrap, "-P", "-t", topic, "-p", "0", stdin=b"c\n")
    assert kcat(own_broker.bootstrap, "-G", group, "-c", "1", *earliest) == b"c\n"


def test_automatic_topic(bootstrap: str, topic: str) -> None:
    kcat(bootstrap, "-P", "-t", topic, stdin=b"first use\n")
    assert consume(bootstrap, topic) == b"first use\n"
