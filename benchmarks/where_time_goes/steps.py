"""Which step of a request a sample belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# By the end of a file's path, and of these the first that fits; what is not here counts for the
# frame that called it.
STEPS: Final[Sequence[tuple[str, str]]] = (
    ("receive_buffer.py", "receive: recv_into, cut into frames"),
    ("network/send_queue.py", "send: send, sendmsg, sendfile"),
    ("one_batch.py", "know the request by its first bytes; its answer"),
    ("<decode>", "decode"),
    ("<encode>", "encode"),
    ("protocol/codec.py", "decode"),
    ("straight_line.py", "decode"),
    ("peers/decoding.py", "decode"),
    ("peers/encoding.py", "encode"),
    ("peer_frames.py", "encode"),
    ("steady_rows.py", "rows to bytes and back"),
    ("replicas/admission.py", "check the batch: header, CRC32C, limits"),
    ("replication/checking.py", "check the batch: header, CRC32C, limits"),
    ("records/header.py", "check the batch: header, CRC32C, limits"),
    ("storage/files.py:sync", "sync"),
    ("storage/files.py:pwritev_synced", "sync"),
    ("storage/files.py", "write to the page cache: pwrite"),
    ("replication/recent.py", "keep a copy for the followers and the journal"),
    ("storage/journal/", "keep a copy for the followers and the journal"),
    ("partitions/storage/", "the log: position, index, roll"),
    ("state_machines/producers.py", "the producer's sequence"),
    ("partitions/raft/", "the group's core"),
    ("partitions/replication/", "the group's replica, rows, outbox"),
    ("replicas/fetch", "fetch: plan, wait, answer"),
    ("replicas/verifying.py", "ask whether the transaction is open"),
    ("state_machines/verifications.py", "ask whether the transaction is open"),
    ("transactions/marker", "markers: send them, write them"),
    ("handlers/write_txn_markers.py", "markers: send them, write them"),
    ("state_machines/transactions/", "the coordinator: decide, its record"),
    ("broker/transactions/", "the coordinator: decide, its record"),
    ("broker/coordinating/", "the coordinator: decide, its record"),
    ("handlers/add_partitions_to_txn.py", "the coordinator: decide, its record"),
    ("handlers/end_txn.py", "the coordinator: decide, its record"),
    ("handlers/fetch.py", "fetch: plan, wait, answer"),
    ("handlers/produce.py", "the handler, who waits for the commit"),
    ("replicas/waiters.py", "the handler, who waits for the commit"),
    ("replicas/driver.py", "end of the turn: outputs, changes, timers"),
    ("broker/replicas/", "the partition as clients see it"),
    ("broker/peers/", "sockets between brokers"),
    ("reactor.py:_linger", "look at the sockets, and linger"),
    ("reactor.py:_serve", "look at the sockets, and linger"),
    ("broker/network/", "connection, dispatch, turn"),
    ("trio/", "trio: waiting, waking, threads"),
)
OTHER: Final = "other"


def step_of(frames: Sequence[str]) -> str:
    """The step of the innermost frame that has one; `frames` are innermost first."""
    for frame in frames:
        for path, step in STEPS:
            if path in frame:
                return step
    return OTHER
