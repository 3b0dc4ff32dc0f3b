"""A way round for packets: through this process, which loses, doubles and holds up some of them.

What a machine is told to send here (a wrong hardware address in its neighbour table is enough)
comes as whole Ethernet frames, and goes on with the address of whom it is for. That needs no packet
filter, and no queueing discipline, which kernels may lack. With the frame comes what the sender's
kernel has left to the network card (`struct virtio_net_hdr`): checksums, and the cutting of up to
64 KB into packets. It goes on as it came, so what is lost at once may be as much as that.
"""

from __future__ import annotations

import heapq
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final

from tests.chaos.networks import Link
from tests.chaos.weather import Weather, fate_in

HARDWARE: Final = "02:00:00:00:fe:fe"
"""Where a frame is sent that is to come by here."""

_OURS: Final = bytes.fromhex(HARDWARE.replace(":", ""))
_OFFLOADS_BYTES: Final = 10
_ADDRESSES: Final = slice(_OFFLOADS_BYTES, _OFFLOADS_BYTES + 12)
_SOURCE_HOST_AT: Final = _OFFLOADS_BYTES + 14 + 15
"""The last byte of the sender's IPv4 address; that of the receiver's is four bytes behind it."""
_HEADERS_END: Final = _OFFLOADS_BYTES + 14 + 20
_FRAME_BYTES_MAX: Final = 1 << 17
_WAITING_MAX: Final = 4096
"""A router that is to hold more drops it."""
_IPV4: Final = 0x0800
_SOL_PACKET: Final = 263
_PACKET_VNET_HDR: Final = 15
_BUFFER_BYTES: Final = 1 << 22
_LOOK_SECONDS: Final = 0.1


class Waiting:
    """Frames that are under way. Those that are due at one time leave in the order they came in."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, bytes]] = []
        self._count = 0

    def add(self, due: float, frame: bytes) -> None:
        if len(self._heap) < _WAITING_MAX:
            self._count += 1
            heapq.heappush(self._heap, (due, self._count, frame))

    def due(self, now: float) -> Iterator[bytes]:
        """What arrives by now; it waits no longer."""
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[2]

    def seconds_left(self, now: float) -> float:
        """Until the next one is due; a moment if none is."""
        left = self._heap[0][0] - now if self._heap else _LOOK_SECONDS
        return min(max(left, 0.0), _LOOK_SECONDS)


class Detour:
    """Passes frames on at one device, from `running` on.

    `hosts` is by the last byte of an IPv4 address: the node, and its hardware address.
    """

    def __init__(self, device: str, hosts: Mapping[int, tuple[int, str]]) -> None:
        self._device = device
        self._nodes = {host: node for host, (node, _) in hosts.items()}
        self._hardware = {
            node: bytes.fromhex(address.replace(":", "")) for node, address in hosts.values()
        }
        self._rng = Random(0)
        self._weathers: Mapping[Link, Sequence[Weather]] = {}
        self._stopping = threading.Event()

    def disturb(self, weathers: Mapping[Link, Sequence[Weather]]) -> None:
        """From now on these, and nothing on all other links."""
        self._weathers = weathers  # one reference: the thread sees the old ones or the new

    @contextmanager
    def running(self) -> Iterator[None]:
        """The device has to be up. Raises `OSError` where the machine has no packet sockets."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as at:
            at.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
            at.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            at.bind((self._device, _IPV4))
            at.setblocking(False)
            thread = threading.Thread(target=self._run, args=(at,), name="detour", daemon=True)
            thread.start()
            try:
                yield
            finally:
                self._stopping.set()
                thread.join()

    def _run(self, at: socket.socket) -> None:
        waiting = Waiting()
        while not self._stopping.is_set():
            select.select([at], [], [], waiting.seconds_left(time.monotonic()))
            self._take_in(at, waiting)
            for frame in waiting.due(time.monotonic()):
                _send(at, frame)

    def _take_in(self, at: socket.socket, waiting: Waiting) -> None:
        while True:
            try:
                frame, (_, _, kind, *_) = at.recvfrom(_FRAME_BYTES_MAX)
            except BlockingIOError:
                return
            if kind == socket.PACKET_OUTGOING:
                continue
            link = self._link_of(frame)
            if link is not None:
                now = time.monotonic()
                for seconds in fate_in(self._weathers.get(link, ()), self._rng):
                    waiting.add(now + seconds, self._addressed(frame, link[1]))

    def _link_of(self, frame: bytes) -> Link | None:
        """`None` if it is none of ours: a switch sends what is for nobody to everybody."""
        if len(frame) < _HEADERS_END or not frame.startswith(_OURS, _OFFLOADS_BYTES):
            return None
        a = self._nodes.get(frame[_SOURCE_HOST_AT])
        b = self._nodes.get(frame[_SOURCE_HOST_AT + 4])
        return None if a is None or b is None else (a, b)

    def _addressed(self, frame: bytes, node: int) -> bytes:
        # From here, not from the sender: the bridge learns from it who is where.
        addresses = self._hardware[node] + _OURS
        return frame[: _ADDRESSES.start] + addresses + frame[_ADDRESSES.stop :]


def _send(at: socket.socket, frame: bytes) -> None:
    try:
        at.send(frame)
    except OSError:
        return  # no room, or the device is gone: one more that is lost
