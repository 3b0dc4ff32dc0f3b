"""All brokers' metrics."""

import urllib.request

import trio

from tidemark.testing import Cluster


async def scraped(cluster: Cluster) -> str:
    """All brokers' metrics."""

    def read(address: str) -> str:
        with urllib.request.urlopen(f"http://{address}/metrics") as page:
            text: str = page.read().decode()
            return text

    pages = [
        await trio.to_thread.run_sync(read, str(broker.http_address))
        for broker in cluster.brokers.values()
    ]
    return "".join(pages)
