"""Where settings come from, which source counts, and what is said about a mistake."""

import os
from pathlib import Path

import pytest

from tidemark.broker.config import SETTINGS, Address, BrokerSettings, User, load_settings
from tidemark.broker.config.addresses import Listener
from tidemark.broker.config.fields import Setting
from tidemark.broker.config.names import MEANINGS
from tidemark.protocol.errors import ConfigError


def written(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def problems(**sources: object) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load_settings(**sources)  # type: ignore[arg-type] # the tests pass what load_settings takes
    return str(raised.value).splitlines()


def test_without_any_source_there_are_the_defaults() -> None:
    assert load_settings().settings == BrokerSettings()


def test_an_option_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "a.toml", "num.partitions = 1\nnode.id = 1\nbroker.rack = 'file'")
    settings = load_settings(
        options={"num.partitions": "3"},
        environment={"TIDEMARK_NUM_PARTITIONS": "2", "TIDEMARK_NODE_ID": "2"},
        file=file,
    ).settings
    assert (settings.num_partitions, settings.node_id, settings.broker_rack) == (3, 2, "file")


def test_our_variables_beat_those_of_kafkas_image() -> None:
    environment = {
        "KAFKA_NUM_PARTITIONS": "7",
        "TIDEMARK_NUM_PARTITIONS": "8",
        "KAFKA_NODE_ID": "5",
    }
    settings = load_settings(environment=environment).settings
    assert (settings.num_partitions, settings.node_id) == (8, 5)


@pytest.mark.parametrize("name", ["num.partitions", "num-partitions", "num_partitions"])
def test_a_dash_or_an_underscore_is_as_good_as_a_dot(name: str) -> None:
    assert load_settings(options={name: "9"}).settings.num_partitions == 9


def test_every_mistake_is_told_with_its_name_its_origin_and_what_is_expected() -> None:
    told = problems(
        options={"num.partitions": "many", "listen": "9092"},
        environment={"TIDEMARK_NODE_ID": "-1"},
    )
    assert told == [
        "node.id = '-1' (environment TIDEMARK_NODE_ID): it takes a whole number, 0 or more",
        "listen = '9092' (option): it takes an address with a port, as host:port",
        "num.partitions = 'many' (option): it takes a whole number from 1 to 100000",
    ]


def test_numbers_have_no_underscores_but_in_toml(tmp_path: Path) -> None:
    environment = {
        "TIDEMARK_NUM_PARTITIONS": "1_0",
        "TIDEMARK_LOG_RETENTION_HOURS": "1_0",
        "TIDEMARK_LOG_ROLL_MS": "1_0",
    }
    told = problems(environment=environment)
    assert len(told) == 3
    assert all(each.endswith("it takes a number without underscores") for each in told)
    file = written(tmp_path, "a.toml", "num.partitions = 1_0")
    assert load_settings(file=file).settings.num_partitions == 10


def test_an_unknown_option_is_told_with_the_nearest_name() -> None:
    assert problems(options={"num.partition": "3"}) == [
        "num.partition (option) is not a setting; did you mean num.partitions?"
    ]


@pytest.mark.parametrize(
    ("content", "spellings"),
    [
        ("node.id = 1\nnode_id = 2", "node.id and node_id"),
        ("node-id = 1\nnode_id = 1", "node-id and node_id"),
        ("node_id = 1\n[node]\nid = 2", "node_id and node.id"),
        ('"node.id" = 1\n[node]\nid = 2', '"node.id" and node.id'),
        ("Node.id = 1\nnode.id = 2", "Node.id and node.id"),
    ],
)
def test_a_setting_in_two_spellings_is_a_mistake(
    content: str, spellings: str, tmp_path: Path
) -> None:
    file = written(tmp_path, "a.toml", content)
    told = problems(file=file)
    assert told == [f"{spellings} ({file}) are the same setting: leave one of them out"]


def test_an_option_and_what_it_is_short_for_are_not_given_both() -> None:
    assert problems(options={"node_id": "1", "node.id": "2"}) == [
        "node_id and node.id (option) are the same setting: leave one of them out"
    ]


def test_in_what_was_written_for_kafka_two_spellings_are_none_of_ours(tmp_path: Path) -> None:
    file = written(tmp_path, "server.properties", "node.id=1\nnode_id=2")
    assert load_settings(file=file).settings.node_id == 1


def test_an_unknown_name_in_toml_is_a_mistake(tmp_path: Path) -> None:
    file = written(tmp_path, "a.toml", "[num]\npartitionz = 3")
    assert problems(file=file) == [
        f"num.partitionz ({file}) is not a setting; did you mean num.partitions?"
    ]


def test_an_unknown_variable_is_only_a_notice() -> None:
    """Kubernetes sets TIDEMARK_SERVICE_HOST for a service that is called tidemark."""
    loaded = load_settings(environment={"TIDEMARK_SERVICE_HOST": "10.0.0.1", "KAFKA_HOME": "/opt"})
    assert loaded.settings == BrokerSettings()
    assert len(loaded.notices) == 1
    assert "TIDEMARK_SERVICE_HOST" in loaded.notices[0]


def test_a_variable_that_is_nearly_a_setting_is_told_with_its_name() -> None:
    (notice,) = load_settings(environment={"TIDEMARK_NUM_PARTITION": "3"}).notices
    assert notice == (
        "environment TIDEMARK_NUM_PARTITION is not a setting and is passed over; did you mean "
        "num.partitions?"
    )


def test_what_the_commands_themselves_read_from_the_environment_is_no_news() -> None:
    environment = {
        "TIDEMARK_BOOTSTRAP": "a:1",
        "TIDEMARK_CLIENT_CONFIG": "client.properties",
        "TIDEMARK_CONFIG": "tidemark.toml",
    }
    assert load_settings(environment=environment).notices == ()


@pytest.mark.parametrize(
    "name",
    ["num.partitions", "offsets.topic.num.partitions", "transaction.state.log.num.partitions"],
)
def test_no_topic_is_to_have_more_partitions_than_one_can(name: str) -> None:
    assert load_settings(options={name: "100000"}).notices == ()
    assert problems(options={name: "100001"}) == [
        f"{name} = '100001' (option): it takes a whole number from 1 to 100000"
    ]


@pytest.mark.parametrize("name", ["broker.rack", "cluster.id"])
def test_what_clients_are_told_fits_into_a_field(name: str) -> None:
    """No client could be answered with a longer one."""
    assert load_settings(options={name: "é" * 16_383}).notices == ()
    (problem,) = problems(options={name: "é" * 16_384})
    assert problem.endswith("it takes text of at most 32767 bytes, or none")


def test_text_is_utf8() -> None:
    (problem,) = problems(options={"broker.rack": os.fsdecode(b"\xff")})
    assert problem.endswith("it takes text in UTF-8, or none")


def test_a_user_is_a_name_and_a_password_and_nothing_else(tmp_path: Path) -> None:
    file = written(tmp_path, "a.toml", '[[users]]\nname = "ada"\npassword = "x"\nrole = "y"')
    assert problems(file=file) == [
        f"users ({file}): it takes tables with a name and a password, and no role"
    ]


def test_toml_takes_dotted_names_as_tables_or_quoted(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "a.toml",
        """
        listeners = ["PLAINTEXT://:9092", "INSIDE://10.0.0.1:9093"]
        "auto.create.topics.enable" = false
        [listener]
        security.protocol.map = "INSIDE:PLAINTEXT"
        [log.retention]
        hours = 2
        """,
    )
    settings = load_settings(file=file).settings
    assert [str(endpoint) for endpoint in settings.listeners] == [
        "PLAINTEXT://:9092",
        "INSIDE://10.0.0.1:9093",
    ]
    assert settings.auto_create_topics_enable is False
    assert settings.topic_defaults == {"retention.ms": "7200000"}


def test_kafkas_own_server_properties_starts_a_broker(tmp_path: Path) -> None:
    """The file that Kafka ships for one node that is broker and controller."""
    file = written(
        tmp_path,
        "server.properties",
        """
        # The role of this server.
        process.roles=broker,controller
        node.id=1
        controller.quorum.bootstrap.servers=localhost:9093
        listeners=PLAINTEXT://:9092,CONTROLLER://:9093
        inter.broker.listener.name=PLAINTEXT
        advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
        controller.listener.names=CONTROLLER
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
        num.network.threads=3
        num.io.threads=8
        socket.send.buffer.bytes=102400
        socket.receive.buffer.bytes=102400
        socket.request.max.bytes=104857600
        log.dirs=/tmp/kraft-combined-logs
        num.partitions=1
        num.recovery.threads.per.data.dir=1
        offsets.topic.replication.factor=1
        share.coordinator.state.topic.replication.factor=1
        transaction.state.log.replication.factor=1
        log.retention.hours=168
        log.segment.bytes=1073741824
        log.retention.check.interval.ms=300000
        """,
    )
    loaded = load_settings(file=file)
    settings = loaded.settings
    assert [listener.name for listener in settings.client_listeners()] == ["PLAINTEXT"]
    assert settings.client_listeners()[0].advertised == Address("localhost", 9092)
    assert settings.data_dir == Path("/tmp/kraft-combined-logs")
    assert settings.topic_defaults == {"retention.ms": "604800000", "segment.bytes": "1073741824"}
    assert settings.offsets_topic_replication_factor == 1
    assert any(notice.startswith("num.io.threads") for notice in loaded.notices)


@pytest.mark.parametrize("name", ["listen", "advertise", "peer.advertise", "http", "join"])
@pytest.mark.parametrize("host", ["a..b", ".a", "x" * 64, "ü..b", "a\udcff"])
def test_a_host_that_cannot_even_be_looked_up_is_refused(name: str, host: str) -> None:
    (told,) = problems(options={name: f"{host}:9093"})
    assert "it takes a host's name before the port" in told


@pytest.mark.parametrize("host", ["a", "a.b.", "A_b-1.example", "münchen.example", "fe80::1"])
def test_a_host_that_can_be_looked_up_is_taken(host: str) -> None:
    address = Address(host, 9093)
    assert load_settings(options={"join": str(address)}).settings.join == (address,)


@pytest.mark.parametrize("name", ["tidemark.toml", "server.properties"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, name, "\ufeffnum.partitions=3\r\n")
    assert load_settings(file=file).settings.num_partitions == 3


def test_a_typo_in_server_properties_is_a_mistake(tmp_path: Path) -> None:
    file = written(tmp_path, "server.properties", "log.retention.hour=3")
    assert problems(file=file) == [
        f"log.retention.hour ({file}) is not a setting; did you mean log.retention.hours?"
    ]


def test_milliseconds_count_before_minutes_and_minutes_before_hours(tmp_path: Path) -> None:
    lines = "log.retention.hours=1\nlog.retention.minutes=2\nlog.retention.ms=3\n"
    file = written(tmp_path, "a.properties", lines)
    assert load_settings(file=file).settings.topic_defaults == {"retention.ms": "3"}


def test_unlimited_stays_unlimited_in_any_unit() -> None:
    settings = load_settings(options={"log.retention.hours": "-1"}).settings
    assert settings.topic_defaults == {"retention.ms": "-1"}


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.conf", "node.id = 4"), ("a.conf", "node.id: 4\nbroker.rack = not toml")],
)
def test_a_file_with_another_ending_is_known_by_its_content(
    tmp_path: Path, name: str, content: str
) -> None:
    assert load_settings(file=written(tmp_path, name, content)).settings.node_id == 4


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert problems(file=missing) == [
        f"cannot read the configuration file {missing}: No such file or directory"
    ]
    broken = written(tmp_path, "broken.toml", "node.id = ")
    assert problems(file=broken)[0].startswith(f"the configuration file {broken} is not TOML: ")


def test_users_come_from_tables_or_from_text_and_passwords_do_not_show(tmp_path: Path) -> None:
    file = written(tmp_path, "a.toml", '[[users]]\nname = "ada"\npassword = "s3cret"')
    from_toml = load_settings(file=file).settings
    from_text = load_settings(environment={"TIDEMARK_USERS": "ada:s3cret"}).settings
    assert from_toml.users == from_text.users == (User("ada", "s3cret"),)
    assert "s3cret" not in repr(from_toml)
    assert "s3cret" not in "".join(problems(options={"users": "s3cret"}))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"listeners": ""}, "listeners is empty"),
        ({"listeners": ":1,:2"}, "listeners has PLAINTEXT more than once"),
        ({"listeners": "PLAINTEXT://:1,OUTSIDE://:2"}, "listener OUTSIDE has no protocol"),
        ({"listeners": "SSL://:1"}, "a listener speaks TLS and there is no certificate"),
        ({"peer.ssl.key.location": "k.pem"}, "there is a peer.ssl.key and no"),
        ({"peer.ssl.required": "false"}, "peer.ssl.required is false and there is no"),
        ({"peer.ssl.ca.location": "ca.pem"}, "brokers speak TLS among themselves with both"),
        ({"peer.ssl.certificate.location": "c.pem"}, "brokers speak TLS among"),
        (
            {
                "listeners": "SSL://:1",
                "ssl.certificate.location": "c.pem",
                "ssl.client.auth": "required",
            },
            "ssl.client.auth is required: name those who sign",
        ),
        (
            {
                "listeners": "SASL_SSL://:1",
                "ssl.keystore.location": "c",
                "sasl.enabled.mechanisms": "PLAIN",
            },
            "a listener asks for SASL, by PLAIN alone",
        ),
        ({"advertise": "OUTSIDE://here:1"}, "advertised.listeners names OUTSIDE"),
        ({"advertise": "0.0.0.0:1"}, "advertised.listeners has 0.0.0.0:1: clients need a host"),
        (
            {"listeners": "SASL_PLAINTEXT://:1", "sasl.enabled.mechanisms": "PLAIN"},
            "a listener asks for SASL, by PLAIN alone, and there are no users: nobody could",
        ),
        ({"group.min.session.timeout.ms": "9999999"}, "group.min.session.timeout.ms is above"),
        ({"queued.max.request.bytes": "4096"}, "queued.max.request.bytes is below"),
        ({"peer.listen": ":9093"}, "peer.listen is :9093, every interface: say with"),
        ({"peer.advertise": "0.0.0.0:1"}, "peer.advertise is 0.0.0.0:1: other brokers need a host"),
        ({"listen": ":9093"}, "listeners has :9093, and other brokers connect to 127.0.0.1:9093"),
        ({"listen": "127.0.0.1:9093"}, "listeners has 127.0.0.1:9093, and other brokers connect"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    options: dict[str, str], problem: str
) -> None:
    (told,) = problems(options=options)
    assert told.startswith(problem)


def test_what_contradicts_something_else_is_told_beside_it() -> None:
    both = {"listeners": "IN://:1,OUT://:2", "peer.ssl.required": "false"}
    one, two, three = problems(options=both)
    assert one.startswith("listener IN has no protocol")
    assert two.startswith("listener OUT has no protocol")
    assert three.startswith("peer.ssl.required is false and there is no")


def test_brokers_to_join_are_addresses_that_can_be_connected_to(tmp_path: Path) -> None:
    file = written(tmp_path, "a.toml", 'join = ["a:9093", "[::1]:9093"]')
    both = (Address("a", 9093), Address("::1", 9093))
    assert load_settings(file=file).settings.join == both
    assert load_settings(options={"join": "a:9093,[::1]:9093"}).settings.join == both
    for wrong in ("a", "a:0", ":9093"):
        (told,) = problems(options={"join": wrong})
        assert told.startswith(f"join = '{wrong}' (option): it takes ")


def test_ports_that_are_free_to_choose_do_not_collide() -> None:
    load_settings(options={"listen": "127.0.0.1:0", "peer.listen": "127.0.0.1:0"})
    load_settings(options={"listen": ":9093", "peer.listen": "10.0.0.1:9094"})
    load_settings(options={"listen": "10.0.0.2:9093", "peer.listen": "10.0.0.1:9093"})


def test_with_users_a_listener_without_a_protocol_asks_for_sasl() -> None:
    users = {"users": "ada:s3cret"}
    assert load_settings(options=users).settings.client_listeners()[0].requires_sasl
    named = load_settings(options={**users, "listeners": "PLAINTEXT://:0"}).settings
    assert not named.client_listeners()[0].requires_sasl


def test_a_listener_without_a_protocol_is_what_it_is_mapped_to_and_asks_for_sasl() -> None:
    def listener(protocol: str) -> Listener:
        options = {
            "users": "ada:s3cret",
            "listener.security.protocol.map": f"PLAINTEXT:{protocol}",
            "ssl.certificate.location": "broker.pem",
        }
        return load_settings(options=options).settings.client_listeners()[0]

    for protocol in ("SSL", "SASL_SSL"):
        assert (listener(protocol).speaks_tls, listener(protocol).requires_sasl) == (True, True)
    for protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
        assert (listener(protocol).speaks_tls, listener(protocol).requires_sasl) == (False, True)


def test_without_users_a_listener_may_ask_for_scram() -> None:
    """Those of the cluster may log in, and the settings know nothing of them."""
    options = {"listeners": "SASL_PLAINTEXT://:0", "sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    assert load_settings(options=options).settings.client_listeners()[0].requires_sasl


def test_a_listener_on_every_interface_shows_each_client_the_address_it_came_by() -> None:
    listener = load_settings(options={"listen": "0.0.0.0:0"}).settings.client_listeners()[0]
    assert listener.shown_to(local_host="10.1.2.3", bound_port=40000) == Address("10.1.2.3", 40000)


def test_an_advertised_address_is_shown_to_every_client() -> None:
    options = {"listen": "0.0.0.0:9092", "advertise": "kafka.example.org:19092"}
    listener = load_settings(options=options).settings.client_listeners()[0]
    shown = listener.shown_to(local_host="10.1.2.3", bound_port=9092)
    assert shown == Address("kafka.example.org", 19092)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_default_is_a_value_of_its_setting(setting: Setting) -> None:
    assert setting.parse(setting.text(setting.default)) == setting.default


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_field_is_called_like_its_setting_and_no_name_means_two_things(setting: Setting) -> None:
    assert setting.field == setting.name.replace(".", "_")
    assert all(MEANINGS[alias].setting == setting.name for alias in setting.aliases)
    assert MEANINGS[setting.name].setting == setting.name


def test_a_default_for_topics_is_checked_like_a_topic_config() -> None:
    assert problems(options={"log.flush": "never"}) == [
        "log.flush = 'never' (option): it takes commit or os"
    ]


@pytest.mark.parametrize(
    "name",
    [
        "StandardAuthorizer",
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
    ],
)
def test_an_authorizer_goes_by_the_names_that_kafka_has_for_it(name: str) -> None:
    options = {"authorizer.class.name": name, "super.users": "User:ann; User:CN=b,O=c;User:ann"}
    settings = load_settings(options=options).settings
    assert settings.authorizer_class_name == "StandardAuthorizer"
    assert settings.super_users == ("User:ann", "User:CN=b,O=c")


def test_principals_in_a_list_may_have_commas_and_are_shown_so(tmp_path: Path) -> None:
    toml = 'authorizer.class.name = "StandardAuthorizer"\nsuper.users = ["User:a", "User:CN=b,O=c"]'
    settings = load_settings(file=written(tmp_path, "a.toml", toml)).settings
    assert settings.super_users == ("User:a", "User:CN=b,O=c")
    assert SETTINGS["super.users"].text(settings.super_users) == "User:a;User:CN=b,O=c"


def test_an_authorizer_that_is_not_there_is_a_mistake() -> None:
    assert load_settings(options={"authorizer.class.name": ""}).settings == BrokerSettings()
    (problem,) = problems(options={"authorizer.class.name": "io.example.Ranger"})
    assert "there is no other authorizer here" in problem
    (problem,) = problems(
        options={"authorizer.class.name": "StandardAuthorizer", "super.users": "ann"}
    )
    assert "User:name" in problem


@pytest.mark.parametrize(
    "options", [{"super.users": "User:a"}, {"allow.everyone.if.no.acl.found": "true"}]
)
def test_what_an_authorizer_needs_is_nothing_without_one(options: dict[str, str]) -> None:
    (problem,) = problems(options=options)
    assert "authorizer.class.name=StandardAuthorizer" in problem
