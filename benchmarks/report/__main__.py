"""`python -m benchmarks.report`: write `results/README.md` and its pictures anew."""

import argparse
import sys
from pathlib import Path

from benchmarks.harness import RESULTS
from benchmarks.report.kept import newest_first
from benchmarks.report.page import page
from benchmarks.report.pictures import save


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=RESULTS)
    directory = parser.parse_args().directory
    try:
        results = newest_first(directory)
    except ValueError as error:
        parser.error(str(error))
    if not results:
        parser.error(f"{directory} has no results: `make bench` makes one")
    path = directory / "README.md"
    path.write_text(page(results, list(save(results, directory))))
    print(f"written: {path}, from {len(results)} results")
    return 0


if __name__ == "__main__":
    sys.exit(main())
