"""What is imported when: a start takes what it needs, and afterwards nothing is left."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

LATE = (
    "tidemark.broker.handlers",
    "tidemark.partitions.state_machines.groups",
    "tidemark.partitions.state_machines.transactions",
)
"""Packages of which a start imports next to nothing."""
STARTED = "import tidemark.broker.server"
SETTLED = "from tidemark.broker.settling_in import steps\nfor step in steps(): step()"
MOST_IN_A_STEP = """
import sys
from tidemark.broker.settling_in import steps
def ours(): return {name for name in sys.modules if name.startswith("tidemark")}
before, counts = ours(), []
for step in steps():
    step()
    counts.append(len(ours() - before))
    before = ours()
print(max(counts))
"""


def imported(*program: str) -> set[str]:
    """The modules that a Python has which has done that and nothing else."""
    lines = (*program, "import sys; print(*sys.modules)")
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


def modules_of(package: str) -> set[str]:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    paths = (path.relative_to(root).with_suffix("") for path in root.rglob("*.py"))
    return {
        ".".join((package, *path.parts))
        for path in paths
        if path.name not in ("__init__", "__main__")
    }


def test_a_start_imports_no_handler_and_no_group() -> None:
    late = set().union(*map(modules_of, LATE))
    started = imported(STARTED)
    assert len(started & late) < 20 < len(late) - 80


def test_the_first_record_waits_for_no_message_of_groups() -> None:
    produced = imported(STARTED, "import tidemark.broker.handlers.produce")
    assert not {module for module in produced if "messages.offset_" in module}


def test_nothing_is_left_to_import_once_a_broker_has_settled_in() -> None:
    late = set().union(*map(modules_of, LATE))
    assert late - imported(STARTED, SETTLED) == set()


def test_no_step_of_settling_in_imports_more_than_a_few_modules() -> None:
    """Requests wait for it: one that imported 23 took 25 to 38 ms."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{STARTED}\n{MOST_IN_A_STEP}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(ran.stdout) <= 3
