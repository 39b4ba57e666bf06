"""How soon the dashboard shows another request, and what the libraries for charts weigh.

python -m bench.dashboard             a session of 10,000 requests and 5,000 segments
python -m bench.dashboard --quick     a tenth of it
python -m bench.dashboard --charts    packages with charts (fetched by pip into out/peers/charts)

A step is measured in a real browser: the page's own work for the event of the slider, and the time until the
frame is painted, which includes waiting for it (17 ms, and longer while the machine has other work).
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from bench.tables import print_table, run
from tests.browser.page_server import POLICY, Answers, served
from tools import browser
from tools.requirement_scan import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REQUESTS, SEGMENTS = 10_000, 5_000
STEPS = 200
MOST_MS = 50.0
WINDOWS = (360, 1400, 3840)

_STEP = """async steps => {
  const slider = document.querySelector('.slider');
  const painted = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const found = [];
  for (let step = 0; step < steps; step += 1) {
    slider.value = String(Math.floor((step * 7919) % Number(slider.max)));
    await painted();
    const began = performance.now();
    slider.dispatchEvent(new Event('input'));
    const ran = performance.now();
    await painted();
    found.push([ran - began, performance.now() - began]);
  }
  return found;
}"""


def main(arguments: list[str]) -> int:
    """Run a benchmark and print what was found."""
    with browser.opened() as started:
        if "--charts" in arguments:
            print_table([["package", "wheel", "script", "zipped", "first chart", "refused by the policy"],
                         *(_weighed(started, one) for one in LIBRARIES)], names=True)  # fmt: skip
            return 0
        tenth = 10 if "--quick" in arguments else 1
        rows, worst = _stepped(started, REQUESTS // tenth, SEGMENTS // tenth)
    print_table(rows, names=True)
    met = "met" if worst < MOST_MS else "NOT MET"
    print(f"\ntarget: the own work of 95 of 100 steps below {MOST_MS:.0f} ms: {met}")
    return 0


# -- The slider


def _stepped(started: Browser, requests: int, segments: int) -> tuple[list[list[str]], float]:
    rows = [["window", "own work", "95 of 100", "slowest", "until painted"]]
    slowest = []
    with served(Answers(requests=requests, segments=segments)) as url:
        for width in WINDOWS:
            page = started.new_page(viewport={"width": width, "height": 900})
            page.goto(f"{url}#/s/stored.made")
            page.wait_for_selector(".strip")
            found = page.evaluate(_STEP, STEPS)
            page.close()
            own = sorted(work for work, _ in found)
            slowest.append(own[STEPS * 95 // 100])
            figures = (median(own), slowest[-1], own[-1], median(after for _, after in found))
            rows.append([f"{width} px", *(f"{each:.1f} ms" for each in figures)])
    return rows, max(slowest)


# -- Libraries for charts


class Library(NamedTuple):
    """A package that carries JavaScript for charts: its files, and a program that draws 1,000 points."""

    package: str
    scripts: tuple[str, ...]
    draw: str


_POINTS = "const xs = Array.from({length: 1000}, (_, i) => i), ys = xs.map(x => Math.sin(x / 50));"
LIBRARIES = (
    Library("XStatic-D3", ("d3.js",), """
        const x = d3.scale.linear().domain([0, 1000]).range([0, 800]);
        const y = d3.scale.linear().domain([-1, 1]).range([300, 0]);
        const svg = d3.select('#chart').append('svg').attr('width', 800).attr('height', 300);
        svg.append('path').attr('d', d3.svg.line().x(i => x(i)).y(i => y(ys[i]))(xs));
        svg.append('g').call(d3.svg.axis().scale(x));"""),
    Library("plotly", ("plotly.min.js",), "await Plotly.newPlot('chart', [{x: xs, y: ys}]);"),
    Library("bokeh", ("bokeh.min.js", "bokeh-api.min.js"), """
        const plot = Bokeh.Plotting.figure({width: 800, height: 300});
        plot.line(xs, ys);
        await Bokeh.Plotting.show(plot, '#chart');"""),
)  # fmt: skip


def _weighed(started: Browser, library: Library) -> list[str]:
    wheel = _fetched(library.package)
    scripts = _scripts(wheel, library)
    size = sum(map(len, scripts.values()))
    zipped = sum(len(gzip.compress(body)) for body in scripts.values())
    with _serving(_chart_files(scripts, library)) as url:
        page = started.new_page()
        refused: list[str] = []
        page.on(
            "console", lambda said: refused.append(said.text) if "Security" in said.text else None
        )
        page.goto(url)
        page.wait_for_selector("body[data-time]")
        taken = float(str(page.get_attribute("body", "data-time")))
        page.close()
    return [library.package, _kb(wheel.stat().st_size), _kb(size), _kb(zipped), f"{taken:.0f} ms",
            f"{len(refused)} times"]  # fmt: skip


def _kb(size: int) -> str:
    return f"{size / 1000:,.0f} kB"


def _fetched(package: str) -> Path:
    folder = ROOT / "out" / "peers" / "charts" / package
    if not list(folder.glob("*.whl")):
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "-d",
            str(folder),
            package,
        ]
        subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def _scripts(wheel: Path, library: Library) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        named = {Path(name).name: name for name in packed.namelist()}
        return {name: packed.read(named[name]) for name in library.scripts}


def _chart_files(scripts: dict[str, bytes], library: Library) -> dict[str, bytes]:
    tags = "".join(f'<script src="/{name}"></script>' for name in scripts)
    page = (f'<!DOCTYPE html><meta charset="utf-8"><script src="/began.js"></script>{tags}'
            '<body><div id="chart"></div><script type="module" src="/draw.js"></script>')  # fmt: skip
    draw = (f"{_POINTS}{library.draw}\nrequestAnimationFrame(() => setTimeout(() => "
            "document.body.dataset.time = performance.now() - began));")  # fmt: skip
    return {"": page.encode(), "began.js": b"globalThis.began = performance.now();",
            "draw.js": draw.encode(), **scripts}  # fmt: skip


@contextmanager
def _serving(files: dict[str, bytes]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = files.get(self.path[1:], b"")
            self.send_response(200)
            kind = "text/javascript" if self.path.endswith(".js") else "text/html"
            for name, value in (("content-type", kind), ("content-length", str(len(body))),
                                ("content-security-policy", POLICY)):  # fmt: skip
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
