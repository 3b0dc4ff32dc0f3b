"""Every version of every message still has the bytes it had."""

import json

import pytest

from tests.golden.messages import FILE, BareExample, FullExample
from tests.protocol.values import MESSAGES, every_version, versions_of
from tidemark.protocol import codec
from tidemark.protocol.schema.declaration import Message

GOLDEN: dict[str, list[str]] = json.loads(FILE.read_text())


def test_the_file_has_every_version_and_nothing_else() -> None:
    assert list(GOLDEN) == [f"{cls.__name__} {version}" for cls, version in every_version()]


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_golden_bytes_are_written_and_read(cls: type[Message]) -> None:
    for version in versions_of(cls):
        examples = (FullExample(version).struct(cls), BareExample(version).struct(cls))
        for example, encoded in zip(examples, GOLDEN[f"{cls.__name__} {version}"], strict=True):
            assert codec.encode(example, version).hex() == encoded
            assert codec.decode(cls, version, bytes.fromhex(encoded)) == example
