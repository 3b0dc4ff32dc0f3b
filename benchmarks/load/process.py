"""`python -m benchmarks.load.process`: a load generator that is told by lines of JSON what to do.

A process of its own, so that load and broker share no interpreter and the processor time of each is
its own; it stays for many tasks, since starting one takes longer than a run. A task opens its
connections (`ready`), runs as often as it is told, and is closed.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.load.consuming import Reader, Shape, read_until_told
from benchmarks.load.producing import Produced, Producers, frames_of
from benchmarks.raw_client import batch_of
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import read_header

Told = Mapping[str, Any]  # JSON, made by `Generator` alone


def main() -> None:
    gc.disable()  # a collection would be measured as the broker's
    while task := _told():
        try:
            {"produce": _produce, "consume": _consume}[task["role"]](task)
        except Exception as error:  # told to who asked, which ends the run
            _say({"failed": f"{type(error).__name__}: {error}"})
        gc.collect()


def _produce(task: Told) -> None:
    batch = batch_of(
        task["batch_bytes"],
        record_bytes=task["record_bytes"],
        compression=Compression[task["compression"].upper()],
    )
    producers = Producers(task["topic"], is_bare=task["is_bare"])
    try:
        frames = {
            place: frames_of(task["topic"], lane["partitions"], batch, acks=task["acks"])
            for place, lane in enumerate(task["lanes"])
        }
        for number in range(task["connections"]):
            place = number % len(frames)
            host, port = task["lanes"][place]["address"]
            producers.connect((host, port), _turned(frames[place], number // len(frames)))
        producers.warm(requests=task["warm"], in_flight=task["in_flight"])
        records = read_header(batch).record_count
        _say({"ready": {"batch_bytes": len(batch), "batch_records": records}})
        while run := _told():
            before = time.process_time()
            if run["rate"] is None:
                made = producers.as_fast_as_answered(
                    seconds=run["seconds"], in_flight=task["in_flight"]
                )
            else:
                made = producers.on_schedule(seconds=run["seconds"], rate=run["rate"])
            _say(_as_json(made, time.process_time() - before))
    finally:
        producers.close()


def _turned(frames: list[bytes], by: int) -> list[bytes]:
    """Begun elsewhere, so that not all connections write to the same partition at once."""
    start = by % len(frames)
    return frames[start:] + frames[:start]


def _as_json(made: Produced, cpu_seconds: float) -> dict[str, object]:
    return {
        "requests": made.requests,
        "handled": made.handled,
        "seconds": made.seconds,
        "began_ns": made.began_ns,
        "latency": made.latency.to_json(),
        "lateness": made.lateness.to_json(),
        "cpu_seconds": cpu_seconds,
    }


def _consume(task: Told) -> None:
    readers = []
    for lane in task["lanes"]:
        host, port = lane["address"]
        shape = Shape(
            topic=task["topic"],
            partitions=lane["partitions"],
            batch_bytes=task["batch_bytes"],
            batch_records=task["batch_records"],
            fetch_bytes=task["fetch_bytes"],
        )
        readers += [
            Reader((host, port), shape, lane["starts"], lane["ends"]) for _ in range(lane["count"])
        ]
    _say({"ready": {}})
    if _told():  # once: a fetch is under way on each connection then, and another begins anew
        before = time.process_time()
        seconds = read_until_told(readers, sys.stdin.fileno(), lambda: int(_told()["tail_bytes"]))
        _say(
            {
                "seconds": seconds,
                "size_bytes": sum(reader.read.size_bytes for reader in readers),
                "requests": sum(reader.read.requests for reader in readers),
                "arrivals": readers[0].read.arrivals,
                "cpu_seconds": time.process_time() - before,
            }
        )
        _told()
    for reader in readers:
        reader.client.close()


def _told() -> Told:
    """The next line; nothing at the end of a task, or of all."""
    line = sys.stdin.buffer.raw.readline()  # type: ignore[union-attr]  # a BufferedReader
    told: Told = json.loads(line) if line else {}
    return told


def _say(what: Mapping[str, object]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
