"""`-X` and `--client-config`: how brokers are reached, by Kafka's names."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tidemark.cli.client_options import read_file
from tidemark.testing import BlockingCluster


def test_a_file_says_where_the_brokers_are_and_may_say_more(
    command: Command,
    tidemark_session: BlockingCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TIDEMARK_BOOTSTRAP")
    config = tmp_path / "client.properties"
    config.write_text(
        f"# of all clients\n\nbootstrap.servers = {tidemark_session.bootstrap}\nacks=all\n"
    )
    assert command("--client-config", str(config), "topic", "list").status == 0
    monkeypatch.setenv("TIDEMARK_CLIENT_CONFIG", str(config))
    assert command("topic", "list", "-X", "client.id=me").status == 0
    monkeypatch.delenv("TIDEMARK_CLIENT_CONFIG")
    where = f"bootstrap.servers={tidemark_session.bootstrap}"
    assert command("topic", "list", "-X", where).status == 0
    assert command("-X", where, "topic", "list").status == 0
    told = command("topic", "list", "-X", "security.protocol=SASL_SSL")
    assert told.status != 0
    assert "sasl.mechanism is missing" in told.err


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("sasl.user=x", "-X sasl.user: no such option; did you mean sasl.username?"),
        ("anything=x", "it takes bootstrap.servers, client.id"),
        ("security.protocol", "expected NAME=VALUE"),
        ("security.protocol=TLS", "one of PLAINTEXT, SSL"),
        (f"client.id={'i' * 2**15}", "client_id has at most 32767 bytes, not 32768"),
    ],
)
def test_what_means_nothing_is_refused(command: Command, option: str, told: str) -> None:
    refused = command("-X", option, "topic", "list")
    assert refused.status != 0
    assert told in refused.err


def test_a_line_that_is_none_is_named(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("client.id=x\nsecurity.protocol SSL\n")
    refused = command("--client-config", str(config), "topic", "list")
    assert refused.status == 2
    assert f"{config}, line 2: expected name=value" in refused.err


def test_a_line_may_go_on_in_the_next_as_in_kafka_s_own_files(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "# of alice \\\nsasl.jaas.config=org.apache.kafka.ScramLoginModule required \\\n"
        '    username="alice" \\\n    password="secret";\nclient.id=x\\\\\nclient.rack=a\\\n'
    )
    assert read_file(config) == {
        "sasl.jaas.config": "org.apache.kafka.ScramLoginModule required "
        'username="alice" password="secret";',
        "client.id": "x\\\\",
        "client.rack": "a",
    }


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_bytes(b"\xef\xbb\xbfsecurity.protocol=SSL\r\n")
    assert read_file(config) == {"security.protocol": "SSL"}


def test_a_file_that_is_no_text_is_refused(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "client.p12"
    config.write_bytes(b"a=\xff\n")
    refused = command("--client-config", str(config), "topic", "list")
    assert refused.status == 2
    assert f"{config}: expected lines of name=value in UTF-8" in refused.err


def test_brokers_that_are_named_by_nothing_are_not_those_of_the_default(command: Command) -> None:
    """As a script does whose variable is not set."""
    for arguments in (["--bootstrap", "", "topic", "list"], ["topic", "list", "--bootstrap", ""]):
        refused = command(*arguments)
        assert refused.status == 2
        assert "no bootstrap address" in refused.err
