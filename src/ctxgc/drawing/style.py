"""The style sheet of all pages: light and dark, for screen, print and small windows."""

from __future__ import annotations

from ctxgc.drawing.frame import TONES

_LIGHT = {
    "paper": "#f6f7f9", "card": "#ffffff", "ink": "#1b2330", "soft": "#5a6676", "rule": "#dde2ea",
    "stripe": "#f2f5f9", "strong": "#e7f0fe", "accent": "#1f63d6", "blue": "#2f8fc9",
    "teal": "#0f8b84", "green": "#2f8f46", "amber": "#b97a00", "orange": "#c9591c", "red": "#c8323f",
    "violet": "#7d4fc4", "grey": "#77828f",
}  # fmt: skip
_DARK = {
    "paper": "#11151c", "card": "#191f29", "ink": "#e4e9f1", "soft": "#9aa7b8", "rule": "#2d3644",
    "stripe": "#1e2530", "strong": "#1d3050", "accent": "#6aa6ff", "blue": "#62bdf0",
    "teal": "#45c8bf", "green": "#63c97c", "amber": "#e6b450", "orange": "#f0935c", "red": "#f27a84",
    "violet": "#b493f5", "grey": "#94a1b1",
}  # fmt: skip

_SHEET = """
*{box-sizing:border-box}
html{scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);line-height:1.5;
 font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main,header,footer{max-width:1120px;margin:0 auto;padding:0 20px}
header{padding-top:36px}
h1{font-size:27px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:19px;margin:0 0 4px}
h3{font-size:15px;margin:18px 0 4px}
p{margin:6px 0 10px;max-width:80ch}
.soft,.note,footer{color:var(--soft)}
.note{font-size:14px}
a{color:var(--accent)}
code,.mono{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
nav{display:flex;flex-wrap:wrap;gap:6px 16px;margin:16px 0 4px;font-size:14px}
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;
 padding:20px 22px;margin:18px 0}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:18px 0 0}
.fact{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:11px 14px}
.fact b{display:block;font-size:21px;line-height:1.25;font-variant-numeric:tabular-nums;
 overflow-wrap:anywhere}
.fact span{color:var(--soft);font-size:13px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:18px 26px}
figure{margin:12px 0 4px;min-width:0}
figcaption{color:var(--soft);font-size:13.5px;margin-top:4px;max-width:80ch}
.wide{overflow-x:auto;margin:10px 0}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
caption{caption-side:bottom;text-align:left;color:var(--soft);font-size:13.5px;padding-top:6px}
th,td{padding:6px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}
th{font-weight:600;color:var(--soft);vertical-align:bottom}
th:first-child,td:first-child,th.left,td.left{text-align:left}
td.flow{white-space:normal;min-width:16ch;overflow-wrap:anywhere;text-align:left}
tbody tr:hover{background:var(--stripe)}
tr.strong td{background:var(--strong);font-weight:600}
td small{color:var(--soft);font-weight:400;font-size:12px}
td.stack small{display:block;line-height:1.15}
td.good{color:var(--green)} td.bad{color:var(--red)} td.warn{color:var(--amber)}
.chip{display:inline-block;border-radius:9px;padding:0 8px;font-size:12px;
 border:1px solid currentColor;color:var(--tone)}
ul{margin:6px 0 10px;padding-left:20px} li{margin:3px 0;max-width:84ch;overflow-wrap:anywhere}
pre{background:var(--stripe);border-radius:8px;padding:10px 12px;overflow-x:auto;margin:8px 0}
details{margin:10px 0} summary{cursor:pointer;color:var(--accent)}
footer{padding-bottom:40px;font-size:13.5px}
.chart{max-width:100%;height:auto;display:block;
 font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
.plot .chart{min-width:720px}
.chart text{fill:var(--ink)} .chart .tick,.chart .axis{fill:var(--soft)} .chart .axis{font-weight:600}
.chart .tick{font-variant-numeric:tabular-nums}
.chart .label{font-size:11.5px;paint-order:stroke;stroke:var(--card);stroke-width:3px}
.chart .centre{font-size:19px;font-weight:600}
.chart .grid{stroke:var(--rule);stroke-width:1}
.chart .mark{stroke:var(--soft);stroke-width:1.2;stroke-dasharray:4 3}
.chart .fill,.chart .dot{fill:var(--tone)} .chart .dot{stroke:var(--card);stroke-width:1.2}
.chart .ring{fill:var(--card);stroke:var(--tone);stroke-width:2}
.chart .hoop{fill:none;stroke:var(--tone)}
.chart .area{fill:var(--tone);opacity:.16} .chart .speck{fill:var(--tone);opacity:.6}
.chart .line{fill:none;stroke:var(--tone);stroke-width:2;stroke-linejoin:round}
.chart .span{stroke:var(--tone);stroke-width:1.4;opacity:.5}
.chart .whisker{fill:none;stroke:var(--ink);stroke-width:1.2;opacity:.7}
.chart .leader{stroke:var(--soft);stroke-width:.8;opacity:.7}
.chart .front{fill:none;stroke:var(--soft);stroke-width:1.4;stroke-dasharray:2 4}
.chart :is(.fill,.dot,.ring,.speck):hover{stroke:var(--ink);stroke-width:2;opacity:1}
@media print{body{background:#fff} section{break-inside:avoid}}
"""


def style_sheet() -> str:
    """Return the style sheet."""
    light, dark = (_colours(palette) for palette in (_LIGHT, _DARK))
    tones = "".join(f".tone-{tone}{{--tone:var(--{tone})}}" for tone in TONES)
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{tones}{_SHEET}"
    )


def _colours(palette: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in palette.items())
