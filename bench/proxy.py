"""What the proxy adds to a request: `python -m bench.proxy`.

A provider on loopback answers at once; the same history is sent to it through a proxy that only passes it on
and through one that collects and finds nothing due. Latency is from the request to the last byte.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2

from ctxgc.proxy import ProxyOptions, ProxyServer

SIZES = (10_000, 100_000, 500_000)
TIMES = 30
WORDS_PER_STEP = 1_400
ANSWER = json.dumps({"usage": {"input_tokens": 1}, "content": []}).encode()
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    b"content-length: " + str(len(ANSWER)).encode() + b"\r\n\r\n"
)


class _Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        # In one write: two would wait for each other's acknowledgement.
        self.wfile.write(HEAD + ANSWER)

    def log_message(self, *_: object) -> None:
        return


def history(tokens: int) -> list[dict[str, object]]:
    """Return a history of tool outputs of about so many tokens."""
    found: list[dict[str, object]] = [{"role": "user", "content": "read all files"}]
    for n in range(max(1, tokens // WORDS_PER_STEP)):
        call = {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {"path": f"f{n}.py"}}
        text = " ".join(f"word{n % 7}" for n in range(n, n + WORDS_PER_STEP // 2))
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": text}
        found += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return found


def measure(url: str, tokens: int) -> tuple[float, float]:
    """Return the median and the 99th percentile of the milliseconds that a growing session takes."""
    messages = history(tokens)
    took = []
    with httpx2.Client(timeout=120) as client:
        for n in range(TIMES + 2):
            messages += [
                {"role": "assistant", "content": f"step {n}"},
                {"role": "user", "content": f"go on {n}"},
            ]
            body = json.dumps({"model": "claude-sonnet-5", "max_tokens": 10, "messages": messages})
            start = time.perf_counter()
            client.post(
                f"{url}/v1/messages", content=body, headers={"x-ctxgc-session": str(tokens)}
            )
            took.append(1_000 * (time.perf_counter() - start))
    # The first request reads the whole history; it is the price of a start, not of a request.
    ordered = sorted(took[2:])
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99)]


def main() -> None:
    """Print the table."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    to = {"anthropic": url, "openai": url}
    print("tokens    passed on p50/p99 ms    collecting p50/p99 ms    added p50 ms")
    for tokens in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            store = f"sqlite:{Path(folder) / 'stash.db'}"
            made = {"port": 0, "upstreams": to, "store": store, "context_limit": 4 * tokens}
            with ProxyServer(ProxyOptions(**made, collect=False)) as proxy:
                plain = measure(proxy.url, tokens)
            with ProxyServer(ProxyOptions(**made)) as proxy:
                full = measure(proxy.url, tokens)
        row = (
            f"{tokens:>7,}",
            f"{plain[0]:.1f} / {plain[1]:.1f}",
            f"{full[0]:.1f} / {full[1]:.1f}",
        )
        print(f"{row[0]}   {row[1]:>20}    {row[2]:>21}    {full[0] - plain[0]:>10.1f}")
    server.shutdown()


if __name__ == "__main__":
    main()
