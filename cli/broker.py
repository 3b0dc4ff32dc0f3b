"""`tidemark serve`: one broker in this process, until it is told to stop.

Standard output gets exactly one line, when the broker serves, for scripts to wait for; log lines go
to standard error. SIGTERM and SIGINT stop it in order, a second one at once; the end of its
terminal (SIGHUP) stops it, too, unless it was started to outlive that (nohup).
"""

import gc
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click
import trio

from tidemark import __version__
from tidemark.cli.pairs import parse_pairs
from tidemark.cli.stop_signals import wait_signal
from tidemark.protocol.errors import ConfigError

if TYPE_CHECKING:
    from tidemark.broker.config import Address, BrokerSettings

# A client that comes sooner has what it needs compiled itself, and is not slowed down.
_SETTLE_SECONDS: Final = 1.0
_REST_SECONDS: Final = 0.02

T = TypeVar("T")

logger = logging.getLogger(__name__)


@click.command()
@click.option("--data-dir", metavar="DIR", help="Directory for all data [./tidemark-data].")
@click.option("--listen", metavar="HOST:PORT", help="Where clients connect [127.0.0.1:9092].")
@click.option(
    "--advertise", metavar="HOST:PORT", help="Address that clients are told to connect to."
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Address of metrics and health checks, or none [127.0.0.1:9644].",
)
@click.option("--node-id", metavar="N", help="The number of this broker [1].")
@click.option("--rack", metavar="NAME", help="The rack or zone that it is in.")
@click.option(
    "--peer-listen", metavar="HOST:PORT", help="Where other brokers connect [127.0.0.1:9093]."
)
@click.option(
    "--peer-advertise",
    metavar="HOST:PORT",
    help="Address that other brokers are told to connect to.",
)
@click.option(
    "--join",
    metavar="HOST:PORT",
    multiple=True,
    help="A broker of the cluster to belong to, by its peer address; may be repeated.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="TIDEMARK_CONFIG",
    metavar="FILE",
    help="Settings file: TOML, or Kafka's server.properties.  [env: TIDEMARK_CONFIG]",
)
@click.option(
    "--set",
    "others",
    metavar="NAME=VALUE",
    multiple=True,
    callback=parse_pairs,
    help="Any setting, by its name; repeatable.",
)
def serve(
    config: Path | None, others: dict[str, str], join: tuple[str, ...], **shortcuts: str | None
) -> None:
    """Run a broker.

    Without options it keeps its data in ./tidemark-data and serves clients on 127.0.0.1:9092. Port
    0 picks a free one. Once it is ready, it prints one line:

    \b
      ready node=1 kafka=127.0.0.1:9092 http=127.0.0.1:9644 peers=127.0.0.1:9093

    With several listeners, kafka= is the first, and listeners= behind peers= has all.

    These addresses are this machine's own. Others are for a network that you trust: what is said is
    not encrypted unless the listener is called SSL or SASL_SSL, clients are asked who they are only
    if there are users, and whoever reaches the address for other brokers can pose as one unless
    they show each other certificates (peer.ssl.certificate.location).

    Every setting is also an environment variable, such as TIDEMARK_NUM_PARTITIONS.
    """
    options = {name: value for name, value in shortcuts.items() if value is not None}
    if join:
        options["join"] = ",".join(join)
    _run({**options, **others}, config)


def _run(options: Mapping[str, str], config: Path | None) -> None:
    # What imports make stays, and so does what a start opens: no collection need look through it,
    # now or later. With 10,000 partitions that was a quarter of the start.
    gc.disable()
    # Here, not above: `tidemark serve --help` needs nothing of a broker.
    from tidemark.broker.config import load_settings
    from tidemark.broker.logs import configure_logs
    from tidemark.broker.system import check_system

    check_system()

    try:
        loaded = load_settings(options=options, environment=os.environ, file=config)
    except ConfigError as error:
        for problem in str(error).splitlines():
            click.echo(f"tidemark: {problem}", err=True)
        raise SystemExit(click.UsageError.exit_code) from error
    settings = loaded.settings
    configure_logs(settings.logging_level, settings.logging_format, sys.stderr)
    # The loop waits this long for a thread that computes, say a scrape. With Python's 5 ms, a
    # scrape of 1000 partitions made the loop 7 ms late in the median, with 1 ms 1.5.
    sys.setswitchinterval(0.001)
    # A burst of small batches is more than ten thousand objects, which die by themselves. With
    # Python's 700 the collector looked through them again and again: 4 % of a leader's time.
    gc.set_threshold(10_000)
    _allow_many_files()
    for notice in loaded.notices:
        logger.info("%s", notice)
    trio.run(_serve_until_stopped, settings)
    logger.info("stopped")


def _allow_many_files() -> None:
    """Use all descriptors the hard limit allows: each partition that is written to holds one."""
    import resource  # which Windows does not have

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # a sandbox may forbid it; then what there is must do
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve_until_stopped(settings: "BrokerSettings") -> None:
    from tidemark.broker.server import open_broker
    from tidemark.broker.threads import run_in_thread

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_on_signal, nursery.cancel_scope)
        async with open_broker(settings) as broker:
            http = broker.http_address or "none"
            print(
                f"ready node={settings.node_id} kafka={broker.kafka_address} http={http}"
                f" peers={broker.peer_address}{_listeners(broker.listeners)}",
                flush=True,
            )
            gc.freeze()
            gc.enable()
            _tell_systemd("READY=1")
            # On a thread, because the first line makes all that lines are made with.
            await run_in_thread(
                logger.info,
                "tidemark %s serves %s at %s",
                __version__,
                settings.data_dir.absolute(),
                broker.kafka_address,
            )
            await _settle_in()
            await trio.sleep_forever()


def _listeners(listeners: "Mapping[str, Address]") -> str:
    """Where there are several: what clients of one may speak is not what those of another do."""
    if len(listeners) == 1:
        return ""
    return " listeners=" + ",".join(f"{name}://{where}" for name, where in listeners.items())


async def _settle_in() -> None:
    """Do early what would make some request wait, now that nobody waits for the start: import what
    the start went without, and compile the codecs of the newest version of each API, which most
    clients speak; others wait for their first.

    One at a time on the loop, which takes 1 to 5 ms, with a rest between them. Not on a thread: one
    that computes gets the interpreter each time the loop lets go of it, at every read and write
    of a socket or file, and keeps it for 1 ms. Under load that was 0.1 s of no progress at all.
    """
    await trio.sleep(_SETTLE_SECONDS)
    for step in await _done(_steps):
        await _done(step)
        await trio.sleep(_REST_SECONDS)
    gc.freeze()  # With all that was made.


def _steps() -> Iterable[Callable[[], object]]:
    from tidemark.broker.settling_in import steps

    return steps()


async def _done(step: Callable[[], T]) -> T:
    """What the step returns, once it can be done: modules are read from files, and clients may
    have taken all descriptors."""
    from tidemark.broker.late_imports import repeatable_imports

    is_told = False
    while True:
        try:
            with repeatable_imports():
                return step()
        except OSError as error:
            if not is_told:
                logger.warning("what later requests need cannot be read yet: %s", error)
            is_told = True
            await trio.sleep(_SETTLE_SECONDS)


async def _cancel_on_signal(scope: trio.CancelScope) -> None:
    number = await wait_signal()
    logger.info("%s: stopping", number.name)
    _tell_systemd("STOPPING=1")
    scope.cancel()


def _tell_systemd(state: str) -> None:
    """sd_notify(3): a datagram to the socket that a service manager names, if one does."""
    path = os.environ.get("NOTIFY_SOCKET")
    if path is None:
        return
    # An "@" stands for the zero byte that an abstract socket's name begins with.
    address = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, suppress(OSError):
        notify.sendto(state.encode(), address)
