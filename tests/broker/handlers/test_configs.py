"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: traps M10 and M11."""

from pathlib import Path

import pytest

from tests.broker.handlers.configuring import (
    ALL_BROKERS,
    BROKER,
    DEFAULT,
    FILE,
    ONE_BROKER,
    OVERRIDE,
    TOPIC,
    by_name,
    change,
    describe,
    overrides,
    replace,
)
from tests.broker.nodes import context, open_node
from tidemark.broker.config import SETTINGS, User
from tidemark.broker.handlers import describe_configs
from tidemark.broker.metadata.topic import NewTopic
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS
from tidemark.protocol.configs import AlterOp
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)


@pytest.mark.parametrize("version", range(1, 5))
async def test_trap_m10_all_configs_of_a_topic_are_listed_with_where_they_come_from(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, topic_defaults={"segment.bytes": "2048"}) as node:
        await node.topics.create(NewTopic(name="waves", configs={"retention.ms": "5"}))
        configs = by_name(await describe(node, TOPIC, "waves", version=version))
        assert configs.keys() == TOPIC_SETTINGS.keys()
        expected = {
            "retention.ms": ("5", OVERRIDE),
            "segment.bytes": ("2048", FILE),
            "cleanup.policy": ("delete", DEFAULT),
        }
        for name, (value, source) in expected.items():
            assert (configs[name].value, configs[name].config_source) == (value, source)
            assert not configs[name].read_only


async def test_trap_m10_synonyms_say_what_a_config_falls_back_to(tmp_path: Path) -> None:
    async with open_node(tmp_path, topic_defaults={"retention.ms": "6"}) as node:
        await node.topics.create(NewTopic(name="waves", configs={"retention.ms": "5"}))
        config = by_name(await describe(node, TOPIC, "waves"))["retention.ms"]
        assert [(each.name, each.value, each.source) for each in config.synonyms] == [
            ("retention.ms", "5", OVERRIDE),
            ("log.retention.ms", "6", FILE),
            ("log.retention.ms", "604800000", DEFAULT),
        ]
        assert config.documentation
        assert config.config_type == 5
        terse = by_name(await describe(node, TOPIC, "waves", explained=False))["retention.ms"]
        assert (list(terse.synonyms), terse.documentation) == ([], None)


async def test_what_topics_do_not_set_is_made_once_for_all_of_them(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="a"))
        await node.topics.create(NewTopic(name="b", configs={"retention.ms": "5"}))
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=TOPIC, resource_name=name, configuration_keys=None
                )
                for name in ("a", "b")
            ]
        )
        response = await describe_configs.handle(node, request, context(4))
        first, second = map(by_name, response.results)
        different = {name for name in first if first[name] is not second[name]}
        assert different == {"retention.ms"}


async def test_trap_m10_only_the_configs_asked_for_are_listed(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves"))
        keys = ("flush", "retention.ms", "no.such")
        configs = by_name(await describe(node, TOPIC, "waves", keys=keys))
        assert sorted(configs) == ["flush", "retention.ms"]


async def test_trap_m10_a_list_that_names_no_config_is_as_none(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves"))
        every = by_name(await describe(node, TOPIC, "waves"))
        assert by_name(await describe(node, TOPIC, "waves", keys=())) == every


async def test_trap_m10_what_was_described_can_be_written_back(tmp_path: Path) -> None:
    """As tools do that read all configs, change one, and write all."""
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves"))
        before = {
            name: each.value for name, each in by_name(await describe(node, TOPIC, "waves")).items()
        }
        written = {**before, "retention.ms": "7"}
        assert await replace(node, "waves", written) == ErrorCode.NONE
        after = {
            name: each.value for name, each in by_name(await describe(node, TOPIC, "waves")).items()
        }
        assert after == written


async def test_trap_m10_all_settings_of_the_broker_are_listed_and_secrets_are_not_told(
    tmp_path: Path,
) -> None:
    users = (User("ada", "s3cret"),)
    async with open_node(
        tmp_path, num_partitions=9, users=users, topic_defaults={"retention.ms": "5"}
    ) as node:
        configs = by_name(await describe(node, BROKER, "1"))
        synonyms = {row.synonym for row in TOPIC_SETTINGS.values() if row.synonym}
        assert configs.keys() == SETTINGS.keys() | synonyms
        assert {name for name, each in configs.items() if not each.read_only} == synonyms
        changed = configs["num.partitions"]
        assert (changed.value, changed.config_source) == ("9", FILE)
        assert configs["node.id"].config_source == DEFAULT
        retention = configs["log.retention.ms"]
        assert (retention.value, retention.config_source) == ("5", FILE)
        assert (configs["users"].value, configs["users"].is_sensitive) == (None, True)
        assert all(each.value is None for each in configs["users"].synonyms)
        assert list((await describe(node, BROKER, "")).configs) == []


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (16, "x", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_not_there_cannot_be_described(
    tmp_path: Path, resource_type: int, name: str, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        assert (await describe(node, resource_type, name)).error_code == code


@pytest.mark.parametrize("version", range(3))
async def test_altering_replaces_all_configs_of_a_topic(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", configs={"retention.ms": "5"}))
        new: dict[str, str | None] = {"flush": "os"}
        assert await replace(node, "waves", new, version=version, validate_only=True) == 0
        assert await overrides(node, "waves") == {"retention.ms": "5"}
        assert await replace(node, "waves", new, version=version) == 0
        assert await overrides(node, "waves") == {"flush": "os"}


@pytest.mark.parametrize(
    ("configs", "code"),
    [
        ({"no.such": "1"}, ErrorCode.INVALID_CONFIG),
        ({"retention.ms": "soon"}, ErrorCode.INVALID_CONFIG),
        ({"retention.ms": None}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_config_that_cannot_be_leaves_all_as_they_were(
    tmp_path: Path, configs: dict[str, str | None], code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", configs={"retention.ms": "5"}))
        assert await replace(node, "waves", {"flush": "os", **configs}) == code
        assert await overrides(node, "waves") == {"retention.ms": "5"}


@pytest.mark.parametrize("version", range(2))
async def test_trap_m11_append_and_subtract_work_on_lists(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves"))
        append = ("cleanup.policy", AlterOp.APPEND, "compact")
        assert await change(node, "waves", append, version=version) == 0
        assert await overrides(node, "waves") == {"cleanup.policy": "delete,compact"}
        subtract = ("cleanup.policy", AlterOp.SUBTRACT, "delete")
        assert await change(node, "waves", subtract, version=version) == 0
        assert await overrides(node, "waves") == {"cleanup.policy": "compact"}


async def test_trap_m11_set_and_delete_change_single_configs(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", configs={"flush": "os"}))
        set_one = ("retention.ms", AlterOp.SET, "5")
        assert await change(node, "waves", set_one, validate_only=True) == 0
        assert await overrides(node, "waves") == {"flush": "os"}
        assert await change(node, "waves", set_one, ("flush", AlterOp.DELETE, None)) == 0
        assert await overrides(node, "waves") == {"retention.ms": "5"}


async def test_what_cannot_be_set_can_be_deleted_as_tools_do(tmp_path: Path) -> None:
    """The end of a reassignment, and MirrorMaker that copies from a newer Kafka."""
    names = [
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "errors.deadletterqueue.group.enable",
        "no.such",
    ]
    gone = [(each, int(AlterOp.DELETE), None) for each in names]
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", configs={"compression.zstd.level": "5"}))
        level = ("compression.zstd.level", int(AlterOp.DELETE), None)
        assert await change(node, "waves", *gone, level) == 0
        assert await overrides(node, "waves") == {}
        assert await change(node, "1", *gone, resource_type=BROKER) == 0
        fixed = ("num.partitions", int(AlterOp.DELETE), None)
        assert await change(node, "1", fixed, resource_type=BROKER) == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (("retention.ms", AlterOp.APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (("no.such", AlterOp.SET, "5"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", AlterOp.SET, None), ErrorCode.INVALID_CONFIG),
        (("retention.ms", 9, "5"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_trap_m11_a_change_that_cannot_be_leaves_all_as_it_was(
    tmp_path: Path, one: tuple[str, int, str | None], code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves"))
        assert await change(node, "waves", ("flush", AlterOp.SET, "os"), one) == code
        assert await overrides(node, "waves") == {}


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (BROKER, "7", ErrorCode.BROKER_ID_NOT_REGISTERED),
        (16, "x", ErrorCode.INVALID_REQUEST),
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_what_is_not_there_cannot_be_altered(
    tmp_path: Path, resource_type: int, name: str, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        assert await replace(node, name, {}, resource_type=resource_type) == code
        assert await change(node, name, resource_type=resource_type) == code


async def test_a_brokers_defaults_for_topics_change_while_it_runs(tmp_path: Path) -> None:
    async with open_node(tmp_path, topic_defaults={"retention.ms": "6"}) as node:
        await node.topics.create(NewTopic(name="waves"))
        set_all = ("log.retention.ms", AlterOp.SET, "5")
        set_one = ("log.retention.ms", AlterOp.SET, "4")
        assert await change(node, "", set_all, resource_type=BROKER) == 0
        assert await change(node, "1", set_one, resource_type=BROKER, validate_only=True) == 0
        assert await change(node, "1", set_one, resource_type=BROKER) == 0
        for resource_type, name, config in (
            (TOPIC, "waves", "retention.ms"),
            (BROKER, "1", "log.retention.ms"),
        ):
            described = by_name(await describe(node, resource_type, name))[config]
            assert (described.value, described.config_source) == ("4", ONE_BROKER)
            assert [(each.value, each.source) for each in described.synonyms] == [
                ("4", ONE_BROKER),
                ("5", ALL_BROKERS),
                ("6", FILE),
                ("604800000", DEFAULT),
            ]
        of_all = by_name(await describe(node, BROKER, ""))
        assert {name: each.value for name, each in of_all.items()} == {"log.retention.ms": "5"}
        assert await replace(node, "1", {}, resource_type=BROKER) == 0
        described = by_name(await describe(node, TOPIC, "waves"))["retention.ms"]
        assert (described.value, described.config_source) == ("5", ALL_BROKERS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", "5"),
        ("zookeeper.connect", "there"),
        ("no.such", "1"),
        ("log.retention.ms", "soon"),
        ("log.retention.ms", "-2"),
        ("leader.replication.throttled.rate", "-1"),
        ("replica.alter.log.dirs.io.max.bytes.per.second", "1"),
    ],
)
async def test_what_cannot_change_while_a_broker_runs_says_so(
    tmp_path: Path, name: str, value: str
) -> None:
    async with open_node(tmp_path) as node:
        set_one = (name, int(AlterOp.SET), value)
        for broker in ("", "1"):
            code = await change(node, broker, set_one, resource_type=BROKER)
            assert code == ErrorCode.INVALID_CONFIG
            code = await replace(node, broker, {name: value}, resource_type=BROKER)
            assert code == ErrorCode.INVALID_CONFIG


async def test_numbers_have_no_underscores_unless_they_were_there_before(tmp_path: Path) -> None:
    """Python reads them, and the tools that are shown them do not."""
    async with open_node(tmp_path) as node:
        old = {"retention.ms": "1_000", "min.cleanable.dirty.ratio": "0.1_0"}
        await node.topics.create(NewTopic(name="waves", configs=old))
        topic = node.topics.get("waves")
        assert topic is not None
        assert topic.config.retention_ms == 1000
        assert await replace(node, "waves", {**old, "segment.ms": "5"}) == ErrorCode.NONE
        for name, value in (("retention.ms", "2_000"), ("min.cleanable.dirty.ratio", "0.2_0")):
            set_it = (name, AlterOp.SET, value)
            assert await change(node, "waves", set_it) == ErrorCode.INVALID_CONFIG
            assert await replace(node, "waves", {name: value}) == ErrorCode.INVALID_CONFIG
        for name in ("log.retention.ms", "leader.replication.throttled.rate"):
            code = await replace(node, "", {name: "2_000"}, resource_type=BROKER)
            assert code == ErrorCode.INVALID_CONFIG
