"""HTTP is served, and the metrics are, once there are descriptors for what they need.

In a process of its own, which has not imported it. Descriptors run out at the import of one module,
and are back once the broker has said so.
"""

import subprocess
import sys
from typing import Final

import pytest

PROGRAM: Final = """
import resource, socket, sys, trio
from tidemark.broker import http
from tidemark.broker.config import Address
from tidemark.broker.metrics import Limits, Metrics, Scrape

http._RETRY_SECONDS = 0.05
before, told, is_out = resource.getrlimit(resource.RLIMIT_NOFILE), [], False

def run_out(event, arguments):
    global is_out
    if event == "import" and arguments[0] == sys.argv[1] and not is_out:
        is_out = True
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))

def come_back(message, *arguments):
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    told.append(message % arguments)

async def get(port, path):
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        asked = f"GET {path} HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n"
        await stream.send_all(asked.encode())
        answer = b"".join([part async for part in stream])
    return answer.decode().splitlines()

async def main():
    bound = http.bind_http(Address("127.0.0.1", 0))
    port, stop = bound.getsockname()[1], trio.Event()
    scrape = Scrape(Metrics(topics_max=1), Limits(partitions_max=1, groups_max=1))
    async with trio.open_nursery() as nursery:
        async def serve():
            await http.serve_http(bound, scrape, http.Readiness(), wait_stop=stop.wait)
        nursery.start_soon(serve)
        with trio.fail_after(60):
            lines = await get(port, "/metrics")
            if "503" in lines[0]:
                come_back("%s", lines[-1])
                lines = await get(port, "/metrics")
        print(is_out, lines[0], *told, sep="|")
        stop.set()

http.logger.warning = come_back
sys.addaudithook(run_out)
trio.run(main)
"""


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("hypercorn", "HTTP cannot be served yet: "),
        pytest.param(
            "asyncio.futures",  # by then asyncio has parts
            "HTTP cannot be served yet: ",
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 13), reason="starlette needs asyncio before 3.13 only"
            ),
        ),
        ("_multiprocessing", "HTTP cannot be served yet: "),  # which is compiled
        ("starlette.routing", "HTTP cannot be served yet: "),
        ("prometheus_client.metrics", "there are none now: "),
        ("tidemark.broker.metrics.collect_balance", "there are none now: "),
    ],
)
def test_what_cannot_be_imported_now_is_imported_later(module: str, said: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, module], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    is_out, status, told = ran.stdout.strip().split("|")
    assert (is_out, status) == ("True", "HTTP/1.1 200 ")
    assert told.startswith(said)
    assert "Too many open files" in told
