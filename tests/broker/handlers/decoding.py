"""Which requests had to be decoded."""

from typing import Any

import pytest

from tidemark.protocol.frames import ApiCodec


def count_decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The API keys of those that are decoded from now on."""
    decoded: list[int] = []
    decode = ApiCodec.decode_request

    def counted(codec: ApiCodec, frame: memoryview, elements_max: int) -> Any:  # Any: as it does
        decoded.append(codec.api.key)
        return decode(codec, frame, elements_max)

    monkeypatch.setattr(ApiCodec, "decode_request", counted)
    return decoded
