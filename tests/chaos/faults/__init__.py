"""What is done to the cluster, by name.

A fault is a context manager: it is there while its block lasts. Ending it leaves the world whole
again (links joined, processes running or started, disks mounted), but does not wait for the cluster
to have recovered: that is measured.
"""

from __future__ import annotations

from typing import Final

from tests.chaos.brokers import ChaosCluster
from tests.chaos.commands import tried
from tests.chaos.faults import bits, disks, links, orders, processes
from tests.chaos.faults.fault import Fault

FAULTS: Final[dict[str, Fault]] = {
    "kill one": processes.kill_one,
    "kill all": processes.kill_all,
    "kill one after the other": processes.kill_again_and_again,
    "pause one": processes.pause_one,
    "pause all but one": processes.pause_all_but_one,
    "isolate one": links.isolate_one,
    "deafen one": links.deafen_one,
    "mute one": links.mute_one,
    "cut some links": links.cut_some_links,
    "cut clients off": links.cut_clients_off,
    "flapping links": links.flap,
    "slow network": links.slow_network,
    "late network": links.late_network,
    "connections reset": links.reset,
    "packets lost": links.lose_packets,
    "packets out of order": links.hold_packets_up,
    "packets doubled": links.double_packets,
    "power cut of one": disks.power_cut_of_one,
    "power cut of some": disks.power_cut_of_some,
    "power cut of all": disks.power_cut_of_all,
    "full disk": disks.full_disk,
    "failing sync": disks.failing_sync,
    "slow sync": disks.slow_sync,
    "bit flip in a segment": bits.flip_in_segment,
    "bit flip in the journal": bits.flip_in_journal,
    "kill one, pause others": orders.kill_and_pause,
    "power cut of one, pause others": orders.cut_power_and_pause,
}
"""Every kind that is drawn at random."""

SERVED_BESIDE: Final = {"kill one", "pause one", "isolate one", "deafen one", "mute one"}
"""While one of these lasts, and no other, what has three replicas is served by the others."""

_BY_PROXY: Final = {"connections reset"}
_OF_PACKETS: Final = {"packets lost", "packets out of order", "packets doubled"}
_OF_THE_DISK: Final = {
    "power cut of one",
    "power cut of some",
    "power cut of all",
    "power cut of one, pause others",
    "full disk",
}
_BY_STRACE: Final = {"failing sync", "slow sync"}
_OF_THREE: Final = {"kill one, pause others", "power cut of one, pause others"}


def possible(cluster: ChaosCluster) -> dict[str, str]:
    """Every fault by name, with the reason why this run cannot have it, or nothing."""
    reasons = dict.fromkeys(FAULTS, "")
    if len(cluster.nodes) != orders.NODES:
        reasons |= dict.fromkeys(_OF_THREE, f"not {orders.NODES} brokers")
    if cluster.network.wires is None:
        reasons |= dict.fromkeys(_BY_PROXY, "needs --network proxies")
    if cluster.network.packets is None:
        reasons |= dict.fromkeys(_OF_PACKETS, "needs network namespaces, and packet sockets")
        if cluster.network.wires is None:
            reasons["late network"] = "needs --network proxies, or packet sockets"
    if not all(broker.disk.can_fail for broker in cluster.brokers.values()):
        reasons |= dict.fromkeys(_OF_THE_DISK, "needs root: no disks of their own")
    if not tried("strace", "-f", "-o", "/dev/null", "true"):
        reasons |= dict.fromkeys(_BY_STRACE, "needs strace")
    return reasons
