"""`tidemark demo`: three brokers on this machine, a `kill -9` of one that leads, and the proof that
nothing was lost.

Everything in it is what a user would run: the brokers are `tidemark serve` processes, the load is
the client library's, and what is shown is what the cluster tells any client.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import click

from tidemark.cli.numbers import Real

if TYPE_CHECKING:
    from tidemark.testing.process_cluster import ProcessCluster

BROKERS: Final = 3


@click.command()
@click.option(
    "--seconds",
    type=Real(3),
    default=15.0,
    show_default=True,
    help="How long records flow; longer if a broker takes longer to come back.",
)
@click.option(
    "--rate",
    type=Real(10, 5000),
    default=300.0,
    show_default=True,
    help="Records a second.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="An empty directory for the brokers' data, which is kept; else a temporary one.",
)
@click.option("--plain", is_flag=True, help="Plain lines, as when the output is not a terminal.")
@click.option("--keep", is_flag=True, help="Let the cluster run on at the end, until Ctrl-C.")
def demo(seconds: float, rate: float, data_dir: Path | None, plain: bool, keep: bool) -> None:
    """Start three brokers, kill one that leads, and see that no record is lost.

    A topic with three replicas is written and read all the time, with acks=all. The broker that
    leads partition 0 is ended by kill -9 and started again later. At the end, what was acknowledged
    is compared with what was read back.

    The exit status is 1 if a record was lost, stored twice or out of order, or if the cluster did
    not recover in time.
    """
    # Here, not above: `tidemark --help` needs none of it.
    import trio

    from tidemark.broker.system import check_system

    check_system()

    from tidemark.cli.demo.play import play
    from tidemark.testing.process_cluster import open_process_cluster

    plain = plain or not sys.stdout.isatty()
    with _folder(data_dir) as folder:
        # The brokers must not outlive this process, however it is told to end. Only of Ctrl-C's
        # signal does trio see to it that it comes where a task can be interrupted.
        signal.signal(signal.SIGTERM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))
        click.echo(f"{BROKERS} brokers start in {folder}")
        began = time.monotonic()
        with open_process_cluster(folder, count=BROKERS) as cluster:
            click.echo(f"they serve after {time.monotonic() - began:.1f} s: {cluster.bootstrap}")
            outcome = trio.run(partial(play, cluster, seconds, rate, plain=plain))
            click.echo(f"\n{outcome}")
            if keep:
                _keep(cluster)
    if not outcome.is_good:
        raise SystemExit(1)


@contextmanager
def _folder(data_dir: Path | None) -> Iterator[Path]:
    if data_dir is None:
        with TemporaryDirectory(prefix="tidemark-demo-") as folder:
            yield Path(folder)
        return
    data_dir.mkdir(parents=True, exist_ok=True)
    if any(data_dir.iterdir()):
        raise click.BadParameter(f"{data_dir} is not empty", param_hint="--data-dir")
    yield data_dir


def _keep(cluster: ProcessCluster) -> None:
    click.echo("\nThe cluster runs until Ctrl-C. In another terminal:\n")
    click.echo(f"  export TIDEMARK_BOOTSTRAP={cluster.bootstrap}")
    click.echo("  tidemark cluster status -o wide\n  tidemark topic describe demo")
    with suppress(KeyboardInterrupt):
        signal.pause()
