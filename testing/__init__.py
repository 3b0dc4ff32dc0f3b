"""For tests, yours and ours: brokers inside the test process, and the doubles of our own seams.

`open_cluster` is for trio, `open_blocking_cluster` for everything else, and pytest gets the
fixtures `tidemark` and `tidemark_session`.

What is named here is imported when it is first asked for: pytest imports this package with the
plugin at its every start, also where no test wants a broker.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.testing.blocking import BlockingCluster, open_blocking_cluster
    from tidemark.testing.cluster import Cluster, NotInTime, open_cluster
    from tidemark.testing.process import BrokerProcess, open_broker_process
else:
    _MODULES = {
        "BlockingCluster": "blocking",
        "BrokerProcess": "process",
        "Cluster": "cluster",
        "NotInTime": "cluster",
        "open_blocking_cluster": "blocking",
        "open_broker_process": "process",
        "open_cluster": "cluster",
    }

    def __getattr__(name: str) -> object:
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{module}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})  # or `help` and completion would know of none


__all__ = [
    "BlockingCluster",
    "BrokerProcess",
    "Cluster",
    "NotInTime",
    "open_blocking_cluster",
    "open_broker_process",
    "open_cluster",
]
