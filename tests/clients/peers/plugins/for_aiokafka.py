"""Puts a broker that is there already in the place of aiokafka's container."""

import os
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


# Any: what their tests use of it is these attributes alone
@pytest.fixture(scope="session")
def kafka_server() -> Any:
    host, port = os.environ["TIDEMARK_HOST"], int(os.environ["TIDEMARK_PORT"])
    return SimpleNamespace(
        host=host,
        port=port,
        ssl_port=1,
        sasl_plain_port=1,
        sasl_ssl_port=1,
        container=None,
        hosts=[f"{host}:{port}"],
    )


@pytest.fixture(scope="session")
def ssl_folder() -> None:
    return None


@pytest.fixture(scope="class")
def acl_manager() -> None:
    return None


@pytest.fixture(scope="class")
def kafka_config() -> None:
    return None


@pytest.fixture(scope="class")
def kerberos_utils() -> None:
    return None


_OURS = (kafka_server, ssl_folder, acl_manager, kafka_config, kerberos_utils)
_NAMES = ("kafka_server", "ssl_folder", "acl_manager", "kafka_config", "kerberos_utils")


@pytest.hookimpl(tryfirst=True)
def pytest_plugin_registered(plugin: object) -> None:
    """Their conftest has fixtures of these names, which start containers: it gets ours instead,
    before pytest looks at it."""
    is_conftest = isinstance(plugin, ModuleType) and plugin.__name__.endswith("conftest")
    if is_conftest and hasattr(plugin, "kafka_image"):
        for name, fixture in zip(_NAMES, _OURS, strict=True):
            setattr(plugin, name, fixture)
