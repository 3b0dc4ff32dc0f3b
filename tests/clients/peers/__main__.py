"""Run one suite and print its table; see the package."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.clients.peers.results import Outcome, table
from tests.clients.peers.suites import COMMON_SETTINGS, SUITES
from tidemark.testing.process import open_broker_process
from tidemark.testing.process_cluster import open_process_cluster


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.clients.peers", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="to run it with")
    parser.add_argument("--bootstrap", help="a broker that runs already; else one is started")
    parser.add_argument("--brokers", type=int, default=1, help="how many are started")
    parser.add_argument("--only", help="only tests with this in their names")
    return parser.parse_args()


@contextmanager
def _open_brokers(directory: Path, count: int, settings: Mapping[str, str]) -> Iterator[str]:
    """One broker, or a cluster of them; where they are."""
    if count == 1:
        with open_broker_process(directory / "data", settings=settings) as broker:
            yield broker.bootstrap
    else:
        with open_process_cluster(directory, count=count, settings=settings) as cluster:
            yield cluster.bootstrap


def main() -> int:
    arguments = _arguments()
    suite, checkout = SUITES[arguments.suite], arguments.checkout.resolve()
    # Not resolved: a virtual environment's interpreter is a link.
    python = arguments.python.absolute()
    if arguments.bootstrap is not None:
        results = suite.run(checkout, python, arguments.bootstrap, only=arguments.only)
    else:
        settings = {**COMMON_SETTINGS, **suite.settings}
        with (
            TemporaryDirectory(prefix="tidemark-peers-") as directory,
            _open_brokers(Path(directory), arguments.brokers, settings) as bootstrap,
        ):
            results = suite.run(checkout, python, bootstrap, only=arguments.only)
    print(table(results))
    return 1 if any(result.outcome is Outcome.FAILED for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
