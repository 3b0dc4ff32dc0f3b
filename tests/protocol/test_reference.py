"""The reference page is what the declarations say."""

from pathlib import Path

from tests.protocol.values import MESSAGES
from tidemark.protocol import peer_reference
from tidemark.protocol.reference import reference
from tidemark.protocol.schema.declaration import Struct
from tidemark.protocol.schema.wire_types import Array, Nested

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "protocol.md").read_text() == reference(), (
        "run: python -m tidemark.protocol.reference > docs/protocol.md"
    )


def test_the_page_of_the_brokers_own_messages_is_up_to_date() -> None:
    assert (DOCS / "peer-protocol.md").read_text() == peer_reference.reference(), (
        "run: python -m tidemark.protocol.peer_reference > docs/peer-protocol.md"
    )


def test_every_declaration_says_what_it_is_in_a_sentence() -> None:
    for cls in MESSAGES:
        check_sentences(cls)


def check_sentences(struct: type[Struct]) -> None:
    assert (struct.__doc__ or "").strip().endswith("."), struct
    for field in struct.wire_fields:
        assert field.doc[0].isupper() or not field.doc[0].isalpha(), field.name
        assert field.doc.endswith("."), field.name
        inner = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(inner, Nested):
            check_sentences(inner.struct)
