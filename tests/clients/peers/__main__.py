"""Run one suite and print its table; see the package."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.clients.peers.results import Outcome, table
from tests.clients.peers.suites import COMMON_SETTINGS, SUITES
from tidemark.testing.process import open_broker_process


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.clients.peers", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="to run it with")
    parser.add_argument("--bootstrap", help="a broker that runs already; else one is started")
    parser.add_argument("--only", help="only tests with this in their names")
    return parser.parse_args()


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
            open_broker_process(Path(directory) / "data", settings=settings) as broker,
        ):
            results = suite.run(checkout, python, broker.bootstrap, only=arguments.only)
    print(table(results))
    return 1 if any(result.outcome is Outcome.FAILED for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
