"""How many connections a process has descriptors for."""

import resource


def connections_max(wanted: int) -> int:
    """So many, but no more than half of the descriptors that this process may have.

    The others are for files and for other brokers: clients that only wait would else take what a
    log or the journal needs for its next file, and that is the end of the broker.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if allowed == resource.RLIM_INFINITY else min(wanted, allowed // 2)
