"""Charts and pages as text: SVG and HTML that need no network and no script, and plots for a terminal.

`svg` draws, `page` puts drawings and tables on one self-contained page, `terminal` does the same with
characters. Everything here is pure: values in, text out, the same bytes each time.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.drawing.charts import (
        Bar, Dot, Series, Slice, Strip, bars, donut, lines, scatter, strips,
    )
    from ctxgc.drawing.html_page import (
        Cell, Section, figure, folded, listing, page, paragraph, preformatted, readable_json,
        side_by_side, table,
    )
    from ctxgc.drawing.scales import short
    from ctxgc.drawing.svg import Axis, Html, joined, tag, tone_at
    from ctxgc.drawing.terminal import (
        Line, STYLES, ScatterPoint, bar, chart, plain, shortened, terminal_bars, terminal_scatter,
        terminal_table, text_of, zone,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "charts": "Bar Dot Series Slice Strip bars donut lines scatter strips",
            "html_page":
                "Cell Section figure folded listing page paragraph preformatted readable_json "
                "side_by_side table",
            "scales": "short",
            "svg": "Axis Html joined tag tone_at",
            "terminal":
                "Line STYLES ScatterPoint bar chart plain shortened terminal_bars "
                "terminal_scatter terminal_table text_of zone",
        },
    )
