"""Who may connect."""

from pathlib import Path
from typing import Final

import attrs

from tidemark.broker.config.authorizers import Authorizer, Principals
from tidemark.broker.config.fields import setting
from tidemark.broker.config.kinds import File, Optionally, Text
from tidemark.broker.config.principal_rules import AsItIs, PrincipalRule, PrincipalRules
from tidemark.broker.config.users import User, Users
from tidemark.partitions.state_machines.config_table import ListOf, OneOf, YesNo

_SECTION: Final = "Security"


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Security:
    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms",
        ListOf(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), empty_allowed=False),
        ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        "The ways in which a client may prove who it is.",
        section=_SECTION,
    )
    users: tuple[User, ...] = setting(
        "users",
        Users(),
        (),
        "Who may connect, beside the users of the cluster: `name:password` with commas between, or "
        "`[[users]]` tables with `name` and `password` in TOML. With any user here, a listener "
        "that does not name its protocol asks for SASL.",
        section=_SECTION,
        is_secret=True,
    )
    authorizer_class_name: str | None = setting(
        "authorizer.class.name",
        Authorizer(),
        None,
        "`StandardAuthorizer`, or the name of Kafka's class: clients may do what ACLs allow them "
        "(`tidemark acl`), on every broker of the cluster alike. Empty: everybody may do "
        "everything.",
        section=_SECTION,
    )
    super_users: tuple[str, ...] = setting(
        "super.users",
        Principals(),
        (),
        "Who may do everything, whatever ACLs say: `User:name`, with semicolons between.",
        section=_SECTION,
    )
    allow_everyone_if_no_acl_found: bool = setting(
        "allow.everyone.if.no.acl.found",
        YesNo(),
        False,
        "Whether everybody may do everything with a topic, say, that no ACL is about.",
        section=_SECTION,
    )
    ssl_certificate_location: Path | None = setting(  # noqa: RUF009 # makes an attrs field
        "ssl.certificate.location",
        Optionally(File()),
        None,
        "What listeners with TLS (`SSL`, `SASL_SSL`) show of themselves: a file in PEM, the "
        "certificate first and then those that signed it. It is read again when it changes.",
        section=_SECTION,
        aliases=("ssl.keystore.location",),
    )
    ssl_key_location: Path | None = setting(  # noqa: RUF009 # as above
        "ssl.key.location",
        Optionally(File()),
        None,
        "The certificate's key, in PEM; without it, the certificate's file has it too.",
        section=_SECTION,
    )
    ssl_key_password: str | None = setting(
        "ssl.key.password",
        Optionally(Text()),
        None,
        "The password of an encrypted key.",
        section=_SECTION,
        is_secret=True,
    )
    ssl_client_auth: str = setting(
        "ssl.client.auth",
        OneOf(("none", "requested", "required")),
        "none",
        "Whether clients have to show a certificate too. With `SSL` it says who they are; with "
        "`SASL_SSL`, SASL does.",
        section=_SECTION,
    )
    ssl_principal_mapping_rules: tuple[PrincipalRule, ...] = setting(
        "ssl.principal.mapping.rules",
        PrincipalRules(),
        (AsItIs(),),
        "What users are called by their certificates: `DEFAULT`, the name in it, or "
        "`RULE:pattern/replacement/` with `L` or `U` behind it for lower or upper case, and commas "
        "between; the first whose pattern matches the whole name counts.",
        section=_SECTION,
    )
    ssl_ca_location: Path | None = setting(  # noqa: RUF009 # as above
        "ssl.ca.location",
        Optionally(File()),
        None,
        "Who signs the clients' certificates: a file in PEM.",
        section=_SECTION,
        aliases=("ssl.truststore.location",),
    )
    peer_ssl_certificate_location: Path | None = setting(  # noqa: RUF009 # as above
        "peer.ssl.certificate.location",
        Optionally(File()),
        None,
        "With it brokers speak TLS among themselves, and nothing else: what this one shows the "
        "others, in PEM, the certificate first and then those that signed it. It is for both "
        "sides of a connection (no `extendedKeyUsage`, or `serverAuth` and `clientAuth`), and is "
        "read again when it changes.",
        section=_SECTION,
    )
    peer_ssl_key_location: Path | None = setting(  # noqa: RUF009 # as above
        "peer.ssl.key.location",
        Optionally(File()),
        None,
        "Its key, in PEM; without it, the certificate's file has it too.",
        section=_SECTION,
    )
    peer_ssl_key_password: str | None = setting(
        "peer.ssl.key.password",
        Optionally(Text()),
        None,
        "The password of an encrypted key.",
        section=_SECTION,
        is_secret=True,
    )
    peer_ssl_ca_location: Path | None = setting(  # noqa: RUF009 # as above
        "peer.ssl.ca.location",
        Optionally(File()),
        None,
        "Who signs the certificates of brokers, in PEM. Whoever has one may be any broker of the "
        "cluster, whatever name is in it: take a CA that signs for nobody else.",
        section=_SECTION,
    )
    peer_ssl_required: bool = setting(
        "peer.ssl.required",
        YesNo(),
        True,
        "Whether brokers have to speak TLS, where this one can. `false` is for while that is "
        "turned on, broker by broker: who speaks without it is taken, too, and dialed.",
        section=_SECTION,
    )
