"""The files of a partition, byte for byte as Kafka writes them."""

from pathlib import Path

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.types import Offset


def test_a_partitions_directory(tmp_path: Path) -> None:
    settings = LogSettings(segment_bytes=600, index_interval_bytes=100)
    log = Log.open(OsFiles(), str(tmp_path), settings, start_offset=Offset(40))
    batches = [
        batch(40, 2, size=50, timestamps_ms=[1_000, 3_000]),
        batch(42, 1, size=50, timestamps_ms=[2_000]),
        batch(43, 3, size=50, timestamps_ms=[4_000, 5_000, 4_500]),
        batch(46, 1, size=50, timestamps_ms=[1_000]),
    ]
    assert list(map(len, batches)) == [176, 118, 234, 118]
    for each in batches:
        log.append(each)
    log.close()
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert files == {
        "00000000000000000040.log": b"".join(batches[:3]),
        # Each entry: the batch's last offset, less 40, and where the batch starts.
        "00000000000000000040.index": bytes.fromhex("00000002 000000b0 00000005 00000126"),
        # Up to offset 42 the largest timestamp is 3000, of the batch that ends at 41.
        "00000000000000000040.timeindex": bytes.fromhex(
            "0000000000000bb8 00000001 0000000000001388 00000005"
        ),
        "00000000000000000046.log": batches[3],
        "00000000000000000046.index": b"",
        "00000000000000000046.timeindex": bytes.fromhex("00000000000003e8 00000000"),
    }
