"""Kafka's names for SASL and TLS: what they mean here, and what is said of those that mean none."""

from pathlib import Path

import pytest

from tidemark.client.security.kafka_names import read_security
from tidemark.client.security.sasl import Sasl
from tidemark.client.security.tls import Tls, context_of
from tidemark.protocol.errors import ConfigError

PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "ada",
    "sasl.password": "secret",
}
TLS = {"security.protocol": "SSL"}


def test_nothing_is_no_security() -> None:
    assert read_security({"client.id": "x"}) == (None, None)
    assert read_security({"security.protocol": "plaintext"}) == (None, None)


def test_a_name_and_a_password() -> None:
    assert read_security(PLAIN) == (Sasl("PLAIN", "ada", "secret"), None)


@pytest.mark.parametrize(
    ("config", "password"),
    [
        (r'x.ScramLoginModule required username="ada" password="a \"b\" c";', 'a "b" c'),
        ("x.PlainLoginModule required\n username='ada'\n password='it;';", "it;"),
    ],
)
def test_the_login_of_javas_clients(config: str, password: str) -> None:
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": config,
    }
    assert read_security(options) == (Sasl("SCRAM-SHA-512", "ada", password), Tls())


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(read_security(PLAIN))


def test_both_families_names_for_certificates() -> None:
    of_librdkafka = {
        **TLS,
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.key.location": "key.pem",
        "ssl.key.password": "open",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert read_security(of_librdkafka) == (
        None,
        Tls(
            ca_file="ca.pem",
            certificate_file="me.pem",
            key_file="key.pem",
            key_password="open",
            checks_name=False,
        ),
    )
    of_java = {
        **TLS,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "me.pem",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert read_security(of_java) == (
        None,
        Tls(ca_file="ca.pem", certificate_file="me.pem", checks_name=False),
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"security.protocol": "TLS"}, "SASL_SSL, not 'TLS'"),
        ({**PLAIN, "sasl.mechanism": "GSSAPI"}, "SCRAM-SHA-512, not 'GSSAPI'"),
        ({**PLAIN, "sasl.mechanism": ""}, "sasl.mechanism is missing"),
        ({**PLAIN, "sasl.password": ""}, "sasl.password is missing"),
        ({**PLAIN, "sasl.username": ""}, "sasl.username is missing"),
        ({**PLAIN, "ssl.ca.location": "ca.pem"}, "no effect with x.security.protocol=SASL_PLAIN"),
        ({**TLS, "sasl.mechanism": "PLAIN"}, "x.sasl.mechanism has no effect"),
        ({**TLS, "ssl.truststore.location": "a.jks"}, "truststore.type is missing: only PEM"),
        (
            {**TLS, "ssl.keystore.location": "a", "ssl.keystore.type": "PKCS12"},
            "x.ssl.keystore.type must be PEM",
        ),
        ({**TLS, "enable.ssl.certificate.verification": "maybe"}, "true or false"),
        ({**TLS, "ssl.endpoint.identification.algorithm": "ldaps"}, "https or none"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(options: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_security(options, prefix="x.")
    assert told in str(caught.value)


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    nothing = str(tmp_path / "nothing.pem")
    with pytest.raises(ConfigError, match=r"nothing\.pem: No such file"):
        context_of(Tls(ca_file=nothing))
    with pytest.raises(ConfigError, match=r"nothing\.pem: No such file"):
        context_of(Tls(certificate_file=nothing))
    garbled = tmp_path / "garbled.pem"
    garbled.write_text("-----BEGIN CERTIFICATE-----\nnothing\n")
    with pytest.raises(ConfigError, match=r"garbled\.pem: "):
        context_of(Tls(ca_file=str(garbled)))
