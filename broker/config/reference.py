"""The configuration's reference page, made from the table of settings.

`python -m tidemark.broker.config.reference > docs/configuration.md`; a test holds the page to this.
"""

from collections.abc import Iterator
from itertools import groupby

from tidemark.broker.config.fields import Setting
from tidemark.broker.config.kafka_names import SCALED_TOPIC_DEFAULTS
from tidemark.broker.config.settings import SETTINGS
from tidemark.partitions.state_machines.throttle_configs import THROTTLE_SETTINGS
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS

_OPENING = """\
# Configuration

A broker needs none: `tidemark serve` keeps its data in `./tidemark-data` and serves clients on
127.0.0.1:9092. Everything here can be set in four places; the first that says something counts:

1. an option: `--set NAME=VALUE`, or `--data-dir`, `--listen`, `--advertise`, `--http`, `--node-id`,
   `--peer-listen`, `--peer-advertise`, `--join`, `--rack`;
2. the environment: `TIDEMARK_` and the name in capitals with underscores, as in
   `TIDEMARK_NUM_PARTITIONS`; then `KAFKA_` in the same way, as Kafka's container image has it;
3. the file that `--config` or `TIDEMARK_CONFIG` names: TOML, or one of Kafka's `server.properties`;
4. the default.

Names are Kafka's where Kafka has one. In TOML the dots may be tables, so these are the same:

```toml
log.retention.hours = 24

[log]
retention.hours = 24
```

A name that is not a setting is an error in an option or a file; so is a setting that is given in
two spellings. In the environment, where other
programs set variables too, it is passed over: with a notice under `TIDEMARK_`, without one under
`KAFKA_`. Settings of Kafka that mean nothing here (threads, the metadata quorum) are passed over
with a notice, there and in a `server.properties`.

## Two addresses: inside and outside

Clients connect to `listeners` once, and from then on to what the broker tells them:
`advertised.listeners`. If the two differ, say so, or clients connect and then hang. For a broker
in a container whose port is published, and whose neighbours reach it by name:

```toml
listeners = "INSIDE://0.0.0.0:29092,OUTSIDE://0.0.0.0:9092"
advertised.listeners = "INSIDE://tidemark:29092,OUTSIDE://localhost:9092"
listener.security.protocol.map = "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"
```

A listener is for IPv4 or for IPv6, and a name counts as its IPv4 address. Both take two listeners:

```toml
listeners = "V4://:9092,V6://[::]:9092"
listener.security.protocol.map = "V4:PLAINTEXT,V6:PLAINTEXT"
```

## Several brokers

Each broker has a number, a data directory and two listeners: one for clients, one for the other
brokers. The first one begins a cluster; the others are told where it is:

```sh
tidemark serve --node-id 1 --data-dir a
tidemark serve --node-id 2 --data-dir b --listen 127.0.0.1:9192 --peer-listen 127.0.0.1:9193 \\
    --http 127.0.0.1:9744 --join 127.0.0.1:9093
```

On several machines `peer.listen` has to be an address that the others reach; on every interface,
`peer.advertise` says which. Without TLS what is said there is neither encrypted nor proven: give it
a network of its own, or the brokers [certificates](#tls-between-brokers).

## Users and passwords

As soon as a broker's settings have a user, clients have to prove who they are, with PLAIN,
SCRAM-SHA-256 or SCRAM-SHA-512, on every listener that is not named `PLAINTEXT` or mapped to it:

```toml
listeners = ":9092"

[[users]]
name = "ada"
password = "correct horse battery staple"
```

A client then says `security.protocol=SASL_PLAINTEXT`, its mechanism, name and password. SCRAM keeps
the password off the network; across a network that is not yours the rest wants TLS. Keep the file
readable for the broker alone (`chmod 600`), or give the users by `TIDEMARK_USERS=name:password,…`;
an option would show in the process list.

Until a client has proven who it is, a request of it has 64 KiB at most, and its message for SASL,
which is its name and password, 8 KiB.

## Users of the cluster

Users can also be made while brokers run, for all of them at once:

```sh
tidemark user set ada
tidemark user list
tidemark user delete ada
```

Kafka's tools and clients make them, too (`kafka-configs --alter --entity-type users`). They are in
the cluster's metadata, and log in with SCRAM at each broker. What is kept there checks a password
and does not tell it, so PLAIN, which brings the password itself, does not let them in.

* *A name that is in a broker's settings* is that user there, whatever the cluster has, and requests
  to change it are refused. Give all brokers the same users in their settings: which of them
  answers is not for the client to choose.
* *A listener asks for a password* because of what it is called, or of users in the settings. Users
  of the cluster change nothing in that: without users in the settings call it `SASL_SSL` or
  `SASL_PLAINTEXT`.
* *The first user* is made by one in the settings, who is among the `super.users` where there are
  [ACLs](operations.md#who-may-do-what), or by who comes in at another listener that asks for
  nothing, on 127.0.0.1 say. With ACLs, users are made by who may `alter` the cluster. Who may do
  that may become whoever is not there yet, so have all `super.users` be there.
* *A new password, and a deletion,* count from the next login on. Connections go on that have logged
  in before: to end them, restart the brokers, or deny that user everything by ACLs.
* *What is sent is not the password, but as good*: make users over TLS, with TLS
  [between brokers](#tls-between-brokers), too. What is kept is as good for who would pose as a
  broker, and lets passwords be guessed: keep data directories and their copies to yourself.

## TLS

A listener called `SSL`, or `SASL_SSL` where clients have to prove who they are too, speaks TLS 1.2
and 1.3:

```toml
listeners = "SASL_SSL://:9092"
advertised.listeners = "SASL_SSL://kafka.example.com:9092"
ssl.certificate.location = "/etc/tidemark/fullchain.pem"
ssl.key.location = "/etc/tidemark/privkey.pem"

[[users]]
name = "ada"
password = "correct horse battery staple"
```

What is advertised has to be a name that the certificate has. Clients then say
`security.protocol=SASL_SSL`, and `ssl.ca.location` where a CA of your own has signed it. A
certificate that is renewed in its file is shown to who connects from then on, without a restart.
With `ssl.client.auth=required` only clients with a certificate by `ssl.ca.location` are let in.

## Users by certificates

At a listener called `SSL`, or mapped to it, a client that shows a certificate is the user that it
names, to [ACLs](operations.md#who-may-do-what) and quotas alike:

```toml
listeners = "SSL://:9092"
ssl.certificate.location = "/etc/tidemark/fullchain.pem"
ssl.key.location = "/etc/tidemark/privkey.pem"
ssl.client.auth = "required"
ssl.ca.location = "/etc/tidemark/users-ca.pem"
authorizer.class.name = "StandardAuthorizer"
super.users = "User:CN=admin,O=Acme"
```

The user's name is the subject of the certificate as Kafka writes it, the most specific part first:
`CN=alice,OU=Data,O=Acme,C=DE`. Nearly the same is shown by

```sh
openssl x509 -in alice.pem -noout -subject -nameopt RFC2253
```

A character that would end a value has a backslash before it: an organisation called `Acme, Inc.` is
`O=Acme\\, Inc.`. An address of mail is `1.2.840.113549.1.9.1=#` and its bytes in hexadecimal, as
with Kafka; a rule gives such users better names. Alternative names (`subjectAltName`) are not
looked at.

`ssl.principal.mapping.rules` makes short names of long ones. In TOML a backslash between single
quotes is a backslash; in a `server.properties` it is written twice.

```toml
ssl.principal.mapping.rules = 'RULE:^CN=([^,\\\\]+),OU=Data,O=Acme,C=DE$/$1/L, DEFAULT'
```

The first rule counts whose pattern matches the whole name. By this one,
`CN=Alice,OU=Data,O=Acme,C=DE` is `User:alice`, and who is of another department keeps the long
name. Patterns are Python's, without what Java reads otherwise; a wrong one is told at the start.

* All whom a rule calls alike are one user: let its pattern have every part that tells them apart.
* Take `[^,\\\\]+` for a value, and not `.*`, which goes on into the next ones. A pattern with
  several `.*`, or with a repetition in a repetition, can take very long over a name that does not
  match, and all other clients wait meanwhile.
* Who shows a certificate and has no name by the rules is not let in. Without rules these are those
  with an empty subject; `RULE:^$/name/` lets them in.

With `ssl.client.auth=requested`, a client without a certificate is `User:ANONYMOUS`. At a listener
with `SASL_SSL` a user is who SASL says, whatever certificate is shown.

## TLS between brokers

Each broker has a certificate, and one CA signs those of all of them and of nobody else: whoever
shows a certificate of that CA may be any broker of the cluster, whatever name is in it.

```toml
peer.ssl.certificate.location = "/etc/tidemark/peer.pem"
peer.ssl.key.location = "/etc/tidemark/peer.key"
peer.ssl.ca.location = "/etc/tidemark/peers-ca.pem"
```

With openssl, the CA once, and the rest for each broker:

```sh
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \\
    -subj "/CN=brokers of tides" -addext keyUsage=critical,keyCertSign \\
    -keyout peers-ca.key -out peers-ca.pem
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \\
    -subj "/CN=broker 1" -keyout peer.key -out peer.csr
openssl x509 -req -in peer.csr -CA peers-ca.pem -CAkey peers-ca.key -CAcreateserial -days 365 \\
    -out peer.pem
```

A cluster that is there already is restarted twice, broker by broker: first with these and
`peer.ssl.required=false`, which takes connections of either kind; then without that.

Files that change are read again, without a restart, for connections that begin from then on. For
another CA: the new one behind the old one in every `peer.ssl.ca.location`, then new certificates,
then the old CA out. A certificate that the others would not take is warned of, at the start and
when it is read again.
"""

_THROTTLES = """\
## Throttles of new replicas

Set while brokers run, of one or of all, by Kafka's tools that move replicas or by `kafka-configs`;
there is no place for them in a file. [How they limit](operations.md#moving-replicas).

| setting of a broker | default | |
|---|---|---|"""

_TOPIC_DEFAULTS = """\
## Defaults for topics

What a topic does not set for itself. The name on the left is the broker's, that on the right the
topic's, for `tidemark topic create --config` and `alter`.

| setting | topic config | default | |
|---|---|---|---|"""


def render() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _OPENING
    for section, settings in groupby(SETTINGS.values(), key=lambda setting: setting.section):
        yield f"## {section}\n"
        yield "| setting | default | |"
        yield "|---|---|---|"
        yield from map(_row, settings)
        yield ""
    yield _THROTTLES
    for row in THROTTLE_SETTINGS.values():
        yield f"| `{row.name}` | no limit | {row.documentation} |"
    yield ""
    yield _TOPIC_DEFAULTS
    for row in TOPIC_SETTINGS.values():
        if row.synonym is not None:
            default = _code(row.default)
            yield f"| `{row.synonym}` | `{row.name}` | {default} | {row.documentation} |"
    yield ""
    units = (f"`{name}` for `{means}`" for name, (means, _) in SCALED_TOPIC_DEFAULTS.items())
    yield f"Other units are taken, too: {', '.join(units)}."
    others = [f"`{row.name}`" for row in TOPIC_SETTINGS.values() if row.synonym is None]
    yield f"\nA topic can also have {', '.join(others)}, which have no default to set here."


def _row(setting: Setting) -> str:
    names = " or ".join(f"`{name}`" for name in (setting.name, *setting.aliases))
    return f"| {names} | {_code(setting.text(setting.default))} | {setting.help} |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    print(render(), end="")
