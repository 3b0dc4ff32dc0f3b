"""The worked example of `docs/spark.md`, run as it stands there."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from tidemark.testing import BlockingCluster

# The first test waits for the session.
pytestmark = pytest.mark.timeout(400)

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"
SECTION = re.compile(r"^## An example.*?(?=^## )", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("spark")  # the session that the example's `session()` gets
def test_the_example_counts_every_line_once_though_it_crashed(
    tidemark: BlockingCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = SECTION.search(PAGE.read_text())
    assert section is not None
    feed, program, again, plot = (match[2] for match in BLOCK.finditer(section[0]))
    definitions = feed.split("tidemark topic create")[0]
    monkeypatch.chdir(tmp_path)

    def run_shell(script: str) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"TIDEMARK_BOOTSTRAP": tidemark.bootstrap, "PATH": path}
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=environment, check=True)

    def run_counts(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["counts.py", *arguments])
        here = program.replace("127.0.0.1:9092", tidemark.bootstrap)
        # The JVM's working directory stays what it was.
        run_python("counts.py", here.replace('"checkpoint"', repr(str(tmp_path / "checkpoint"))))

    run_shell(feed)
    # What the example's second block has Python do is done here, in the session there is.
    crash, more, on = again.splitlines()
    assert crash == "python counts.py --crash"
    with pytest.raises(StreamingQueryException, match="in the middle of batch 2"):
        run_counts("--crash")
    assert sorted(path.name for path in Path("counts").iterdir()) == ["0.json", "1.json"]
    run_shell(f"{definitions}{more}")
    assert on == "python counts.py"
    run_counts()
    counts = {int(path.stem): json.loads(path.read_text()) for path in Path("counts").iterdir()}
    assert counts[max(counts)] == {
        package: lines_of(package) for package in ("json", "email", "http", "urllib")
    }
    run_python("plot.py", plot)
    assert Path("counts.png").stat().st_size > 5_000


def run_python(name: str, program: str) -> None:
    exec(compile(program, name, "exec"), {"__name__": "__main__"})


def lines_of(package: str) -> int:
    files = Path(sysconfig.get_path("stdlib"), package).glob("*.py")
    return sum(file.read_bytes().count(b"\n") for file in files)
