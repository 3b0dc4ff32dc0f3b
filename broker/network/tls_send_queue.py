"""What a connection with TLS has still to send."""

from __future__ import annotations

from tidemark.broker.network.send_queue import FileSlice, SendQueue, file_ended
from tidemark.broker.network.tls_stream import TlsStream
from tidemark.broker.network.wire import Wire


class TlsSendQueue(SendQueue):
    """What comes from files is read and encrypted: the kernel cannot send it by itself."""

    __slots__ = ("_stream",)

    def __init__(self, stream: TlsStream) -> None:
        super().__init__()
        self._stream = stream

    def _send_slice(self, client: Wire, part: FileSlice) -> int:
        at, size = part.position + self._at, len(part) - self._at
        sent = self._stream.send_file(part.fileno(), at, size)
        if sent == 0:
            raise file_ended()
        return sent
