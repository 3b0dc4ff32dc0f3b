"""For every test."""

import gc
import os
import signal
import socket
import sys
import warnings
from collections.abc import Generator, Iterator
from typing import IO, TYPE_CHECKING, Final
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadFileScheduling

REAL_TIME: Final = (
    "tests/benchmarks/",
    "tests/broker/",
    "tests/chaos/",
    "tests/cli/",
    "tests/client/",
    "tests/clients/",
    "tests/system/",
    "tests/testing/test_",
)
"""Where real processes, threads, sockets and clocks are. All others must give the same answer every
time."""

# A deadline per example measures how busy the machine is, and so does how long examples take to be
# made. Slow tests end by pytest's own timeout.
# `make simulate` takes many more examples; their number is here, where a test says none of its own.
settings.register_profile(
    "tidemark",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("TIDEMARK_EXAMPLES", "50")),
)
settings.load_profile("tidemark")


def pytest_configure() -> None:
    """Have Ctrl-C reach the processes of tests, also in a run in a shell's background.

    A shell has those ignore SIGINT, and their children inherit it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have a test in real time run once more if it fails: what else the machine does is no bug.

    The end of the run shows each first failure, so that somebody looks at it. Not where a failure
    is what is looked for (`tests/mutations/`).
    """
    items.sort(key=_place)
    if os.environ.get("TIDEMARK_TRIES") == "1":
        return
    for item in items:
        if item.nodeid.startswith(REAL_TIME):
            item.add_marker(pytest.mark.flaky(reruns=1))


FAILED: Final = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Collect what a failed test has left open, or a test that runs later would fail of it."""
    try:
        return (yield)
    finally:
        if item.stash.get(FAILED, False):
            item.stash[FAILED] = False
            for name in ("last_type", "last_value", "last_traceback", "last_exc"):
                if hasattr(sys, name):
                    delattr(sys, name)
            with warnings.catch_warnings(action="ignore"):
                gc.collect()


def _place(item: pytest.Item) -> tuple[bool, int]:
    """What starts a JVM comes first, having the longest way to go; the other files are mixed.

    They are so in the same way each time. Of two processes one computes while the other waits.
    """
    file = item.nodeid.partition("::")[0]
    return "spark" not in file, crc32(file.encode())


def pytest_collection_finish() -> None:
    """Spare the garbage collector the thousands of tests, which live to the end of the run."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> "LoadFileScheduling":
    """Whole files to each process, and all of Spark's to the first: it is started once."""
    from xdist.scheduler import LoadFileScheduling

    scheduler = LoadFileScheduling(config, log)
    file_of = scheduler._split_scope

    def scope_of(nodeid: str) -> str:
        file = file_of(nodeid)
        return "spark" if "spark" in file else file

    scheduler._split_scope = scope_of
    return scheduler


@pytest.fixture(scope="session", autouse=True)
def forked_brokers() -> Iterator[None]:
    """Have each `BrokerProcess` be a fork of one process that has imported everything."""
    from tests.forked import Forked
    from tidemark.testing.process import BrokerProcess

    def spawn(broker: BrokerProcess, log: IO[bytes]) -> Forked:
        return Forked(broker.command(), stderr=log, environment=broker._environment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BrokerProcess, "_spawn", spawn)
        yield


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One Spark for all tests: it takes longer to start than they take to run."""
    from tidemark.client.spark import session

    with socket.create_server(("127.0.0.1", 0)) as free:
        connect_port = free.getsockname()[1]
    started = session(
        "local[2]",
        config={
            # Spark Connect's server, in the same JVM.
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(connect_port),
            "spark.ui.enabled": "false",
            # It ends before the better compiler would have paid off.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.pollingDelay": "100ms",
        },
    )
    started.sparkContext.setLogLevel("OFF")
    # Registered sources are known in one session only: in this one it was found by its name.
    yield started.newSession()
    started.stop()
