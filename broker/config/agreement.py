"""What must hold between settings, once each is right by itself."""

from collections.abc import Iterator

from tidemark.broker.config.addresses import Address, Endpoint, SecurityProtocol
from tidemark.broker.config.settings import BrokerSettings

_PROTOCOLS = frozenset(protocol.value for protocol in SecurityProtocol)


def problems_between(settings: BrokerSettings) -> Iterator[str]:
    """Each contradiction, as a sentence that says what to change."""
    yield from _listener_problems(settings)
    yield from _peer_problems(settings)
    without_protocol = list(_without_protocol(settings))
    yield from without_protocol or _protocol_problems(settings)
    yield from _peer_tls_problems(settings)
    yield from _authorizer_problems(settings)
    if settings.group_min_session_timeout_ms > settings.group_max_session_timeout_ms:
        yield (
            "group.min.session.timeout.ms is above group.max.session.timeout.ms: "
            "no member could join"
        )
    if settings.group_consumer_heartbeat_interval_ms >= settings.group_consumer_session_timeout_ms:
        yield (
            "group.consumer.heartbeat.interval.ms is not below group.consumer.session.timeout.ms: "
            "members would be taken out between two heartbeats; lower the one or raise the other"
        )
    if settings.queued_max_request_bytes < settings.socket_request_max_bytes:
        yield (
            "queued.max.request.bytes is below socket.request.max.bytes: the largest request "
            "could never be received; raise the one or lower the other"
        )


def _listener_problems(settings: BrokerSettings) -> Iterator[str]:
    if not settings.listeners:
        yield "listeners is empty: clients need at least one"
    for setting, endpoints in (
        ("listeners", settings.listeners),
        ("advertised.listeners", settings.advertised_listeners),
    ):
        for name in _repeated(endpoints):
            yield f"{setting} has {name} more than once: give each listener a name of its own"
    listening = {endpoint.name for endpoint in settings.listeners}
    for endpoint in settings.advertised_listeners:
        if endpoint.name not in listening:
            yield (
                f"advertised.listeners names {endpoint.name}, which is not one of listeners: "
                f"{', '.join(sorted(listening))}"
            )
        if endpoint.address.is_wildcard:
            yield f"advertised.listeners has {endpoint}: clients need a host to connect to"


def _peer_problems(settings: BrokerSettings) -> Iterator[str]:
    listen, advertise = settings.peer_listen, settings.peer_advertise
    if advertise is None and listen.is_wildcard:
        yield (
            f"peer.listen is {listen}, every interface: say with peer.advertise where the other "
            "brokers reach this one"
        )
    if advertise is not None and advertise.is_wildcard:
        yield f"peer.advertise is {advertise}: other brokers need a host to connect to"
    for endpoint in settings.listeners:
        if _collide(endpoint.address, listen):
            yield (
                f"listeners has {endpoint}, and other brokers connect to {listen}: change its "
                "port, or that of peer.listen"
            )


def _collide(one: Address, other: Address) -> bool:
    if one.port != other.port or not one.port:
        return False
    return one.host == other.host or one.is_wildcard or other.is_wildcard


def _without_protocol(settings: BrokerSettings) -> Iterator[str]:
    protocols = dict(settings.listener_security_protocol_map)
    for endpoint in settings.listeners:
        if protocols.get(endpoint.name, endpoint.name) not in _PROTOCOLS:
            yield (
                f"listener {endpoint.name} has no protocol: add {endpoint.name}:PLAINTEXT, or "
                "SASL_PLAINTEXT, SSL or SASL_SSL, to listener.security.protocol.map"
            )


def _protocol_problems(settings: BrokerSettings) -> Iterator[str]:
    """What the listeners' protocols need. To be asked once each has one."""
    listeners = settings.client_listeners()
    if any(each.speaks_tls for each in listeners):
        if settings.ssl_certificate_location is None:
            yield (
                "a listener speaks TLS and there is no certificate: name its file, in PEM, with "
                "ssl.certificate.location"
            )
        if settings.ssl_client_auth != "none" and settings.ssl_ca_location is None:
            yield (
                f"ssl.client.auth is {settings.ssl_client_auth}: name those who sign the clients' "
                "certificates with ssl.ca.location"
            )
    # By SCRAM those of the cluster may log in, of whom the settings know nothing.
    has_scram = any(each.startswith("SCRAM-") for each in settings.sasl_enabled_mechanisms)
    if any(each.requires_sasl for each in listeners) and not (settings.users or has_scram):
        yield (
            "a listener asks for SASL, by PLAIN alone, and there are no users: nobody could "
            "connect; add users, or SCRAM-SHA-256 to sasl.enabled.mechanisms"
        )


def _peer_tls_problems(settings: BrokerSettings) -> Iterator[str]:
    if settings.peer_ssl_certificate_location is None and (
        settings.peer_ssl_key_location or settings.peer_ssl_key_password
    ):
        yield (
            "there is a peer.ssl.key and no peer.ssl.certificate.location: brokers would speak "
            "without TLS; name the certificate, too"
        )
    if settings.peer_ssl_certificate_location is None and not settings.peer_ssl_required:
        yield (
            "peer.ssl.required is false and there is no peer.ssl.certificate.location: nothing is "
            "spoken but plain; name a certificate, or leave it out"
        )
    if (settings.peer_ssl_certificate_location is None) != (settings.peer_ssl_ca_location is None):
        yield (
            "brokers speak TLS among themselves with both peer.ssl.certificate.location and "
            "peer.ssl.ca.location: each shows a certificate, and asks for one; set both, or neither"
        )


def _authorizer_problems(settings: BrokerSettings) -> Iterator[str]:
    if settings.authorizer_class_name is None and (
        settings.super_users or settings.allow_everyone_if_no_acl_found
    ):
        yield (
            "there are super.users, or allow.everyone.if.no.acl.found, and no authorizer: "
            "everybody may do everything; add authorizer.class.name=StandardAuthorizer, or leave "
            "them out"
        )


def _repeated(endpoints: tuple[Endpoint, ...]) -> list[str]:
    names = [endpoint.name for endpoint in endpoints]
    return sorted({name for name in names if names.count(name) > 1})
