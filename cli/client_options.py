"""How brokers are reached beyond their addresses: `-X NAME=VALUE`, and a file of such lines, by the
names that Kafka's clients and kcat have.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tidemark.cli.numbers import WHOLE_MAX

if TYPE_CHECKING:
    from tidemark.client import ClientSettings

FILE_VARIABLE: Final = "TIDEMARK_CLIENT_CONFIG"
BOOTSTRAP: Final = "bootstrap.servers"
CLIENT_ID: Final = "client.id"
RACK: Final = "client.rack"
REQUEST_BYTES_MAX: Final = ("max.request.size", "message.max.bytes")
"""Java's name, and librdkafka's."""


def read_file(path: Path) -> dict[str, str]:
    """Lines of `name=value`; those that begin with `#` or `!`, and empty ones, say nothing.

    One that ends in a backslash goes on in the next, as a `sasl.jaas.config` often does.
    A name that means nothing to the command is let be: the file may be other clients', too.
    """
    found: dict[str, str] = {}
    try:
        lines = path.read_text("utf-8-sig").splitlines()  # Editors on Windows begin with a mark.
    except UnicodeDecodeError:
        raise click.UsageError(f"{path}: expected lines of name=value in UTF-8") from None
    for number, text in _whole_lines(lines):
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"{path}, line {number}: expected name=value")
        found[name.strip()] = value.strip()
    return found


def _whole_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Those that say something, and the numbers under which they begin."""
    begun, first = "", 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not begun and (not text or text[0] in "#!"):
            continue
        first = first if begun else number
        begun += text
        if _goes_on(text):
            begun = begun[:-1]
            continue
        yield first, begun
        begun = ""
    if begun:
        yield first, begun


def _goes_on(line: str) -> bool:
    """Two backslashes are one that is meant."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def read_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """What `-X` was given. Raises `UsageError` for a name that means nothing."""
    if not pairs:
        return {}  # and no client is imported, of which a broker, say, needs nothing
    from tidemark.client.security.kafka_names import NAMES

    known = (BOOTSTRAP, CLIENT_ID, RACK, *REQUEST_BYTES_MAX, *NAMES)
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"-X {pair}: expected NAME=VALUE")
        try:
            value.encode()
        except UnicodeEncodeError:
            said = os.fsencode(value)
            raise click.UsageError(f"-X {name}: {said!r} is not UTF-8") from None
        if name not in known:
            from difflib import get_close_matches

            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it takes {', '.join(known)}"
            raise click.UsageError(f"-X {name}: no such option; {hint}")
        found[name] = value
    return found


def request_bytes_max(given: Mapping[str, str]) -> int:
    """How large a producer's requests may get. Raises `UsageError` for what is no such number."""
    for name in REQUEST_BYTES_MAX:
        if (text := given.get(name)) is not None:
            is_number = re.fullmatch("[0-9]{1,10}", text) is not None
            if not (is_number and 0 < int(text) <= WHOLE_MAX):
                most = f"expected a number of bytes, {WHOLE_MAX} at most"
                raise click.UsageError(f"{name}={text}: {most}")
            return int(text)
    return 1 << 20


def settings_of(given: Mapping[str, str], *, rack: str | None) -> "ClientSettings":
    """The client's settings. Raises `ConfigError` naming the option that cannot be used."""
    from tidemark.client import ClientSettings
    from tidemark.client.security.kafka_names import read_security
    from tidemark.protocol.errors import ConfigError

    sasl, tls = read_security(given)
    try:
        return ClientSettings(
            client_id=given.get(CLIENT_ID, "tidemark-cli"),
            rack=rack or given.get(RACK) or None,
            sasl=sasl,
            tls=tls,
        )
    except ValueError as error:  # a name as long as no request can say
        raise ConfigError(str(error)) from error
