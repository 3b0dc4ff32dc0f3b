"""A topic whose retention keeps up goes on in the files that it has, through a crash as well."""

import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from socket import MSG_PEEK

import pytest

from tests.recycling import need_recycling
from tests.system.attacks import Peer, batch, fetching
from tidemark.client.blocking import open_client
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages.fetch import FetchResponse
from tidemark.protocol.records.records import decode_records
from tidemark.testing import open_blocking_cluster
from tidemark.testing.process import open_broker_process

RECORD = 300_000
"""Bytes: three to a segment."""


def sizes(folder: Path) -> dict[str, int]:
    """The segments' files by name."""
    found = {}
    for path in folder.glob("*.log"):
        with suppress(FileNotFoundError):  # gone meanwhile
            found[path.name] = path.stat().st_size
    return found


def produce(peer: Peer, number: int) -> None:
    record = number.to_bytes(4, "big") * (RECORD // 4)
    assert peer.produce("short", batch(record)) is ErrorCode.NONE


def check(peer: Peer, end: int) -> None:
    """All that is there is what was produced, up to this offset."""
    there = list(peer.records_below("short", end))
    assert there[0].offset > 0
    for record in there:
        assert record.value == record.offset.to_bytes(4, "big") * (RECORD // 4)


def write_over(peer: Peer, folder: Path) -> int:
    """Produce until three files have been used again; how much that was."""
    used_again = count = 0
    while used_again < 3:
        assert count < 200
        before = sizes(folder)
        produce(peer, count)
        count += 1
        # With one batch in it, and the length of three.
        new = [size for name, size in sizes(folder).items() if name not in before]
        used_again += sum(size > 2 * RECORD for size in new)
        time.sleep(0.1)
    return count


@pytest.mark.parametrize("flush", ["os", "commit"])
def test_new_segments_are_written_over_the_files_of_old_ones(tmp_path: Path, flush: str) -> None:
    need_recycling(tmp_path)
    data = tmp_path / "data"
    folder = data / "short-0"
    with open_broker_process(data) as broker:
        with Peer(broker.bootstrap) as peer:
            peer.create_topic(
                "short", segment_bytes="1000000", retention_bytes="1000000", flush=flush
            )
            count = write_over(peer, folder)
            broker.kill()
        broker.start()
        with Peer(broker.bootstrap) as peer:
            check(peer, count)
            for _ in range(5):
                produce(peer, count)
                count += 1
            check(peer, count)
            assert broker.stop(timeout_seconds=40) == 0
        with (folder / max(sizes(folder))).open("ab") as last:
            last.write(2 * batch(b"of an older segment"))
        broker.start()
        assert "bytes that an older segment had left" in broker.log
        with Peer(broker.bootstrap) as peer:
            check(peer, count)


def test_what_followers_were_sent_is_written_over_too(tmp_path: Path) -> None:
    """They get copies."""
    need_recycling(tmp_path)
    with open_blocking_cluster(brokers=3, data_dir=tmp_path) as cluster:
        configs = {"segment.bytes": "1000000", "retention.bytes": "1000000"}
        with open_client(cluster.bootstrap) as client:
            make = partial(client.admin.create_topic, "short", partitions=1, configs=configs)
            client.run(make)
        leader = cluster.wait_leader("short")
        with Peer(cluster.bootstrap_of(leader)) as peer:
            write_over(peer, cluster.data_dir_of(leader) / "short-0")


def test_who_reads_an_answer_late_reads_what_was_sent(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with (
        open_broker_process(data) as broker,
        Peer(broker.bootstrap) as peer,
        Peer(broker.bootstrap) as late,
    ):
        peer.create_topic("short", segment_bytes="1000000", retention_bytes="1000000", flush="os")
        for number in range(3):
            produce(peer, number)
        request = fetching("short", 0)
        late.send(encode_request(request, 12, 7, "late"))
        # All of it is in the sockets' buffers, and is the file's pages still.
        assert late.socket.recv(1, MSG_PEEK)
        time.sleep(0.2)
        for number in range(3, 20):
            produce(peer, number)
            time.sleep(0.1)
        assert "00000000000000000000.log" not in sizes(data / "short-0")
        answer = late.read(request, 12, FetchResponse)
        records = answer.responses[0].partitions[0].records
        assert isinstance(records, memoryview)
        there = [(each.offset, each.value) for each in decode_records(records)]
        assert there == [(n, n.to_bytes(4, "big") * (RECORD // 4)) for n in range(3)]
