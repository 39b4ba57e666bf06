"""Charts and pages as text: SVG and HTML that need no network and no script, and plots for a terminal.

`charts` draws bars, donuts, lines, scatters and strips; `html_page` puts them with tables on one
self-contained page; `terminal` draws with characters (its names start with `terminal_*` where a page has
the same); `layout` fits lines and tables into the columns of a terminal. `scales` and `svg` are what they
share. Everything but `terminal_width` is pure: values in, text out, the same bytes each time.
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
        Cell, DrawnAtWidth, Program, Section, figure, folded, listing, page, paragraph,
        placeholder, preformatted, readable_json, side_by_side, style_sheet, table,
    )
    from ctxgc.drawing.layout import (
        Column, Entry, Line, PIPED_WIDTH, Span, cut, display_width, plain, shortened, terminal_table,
        terminal_width, text_of, wrapped,
    )
    from ctxgc.drawing.scales import count, dollars_text, short
    from ctxgc.drawing.svg import Axis, Html, joined, tag, tone_at
    from ctxgc.drawing.terminal import (
        STYLES, ScatterPoint, bar, chart, chart_columns, rule, terminal_bars, terminal_scatter, zone,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "charts": "Bar Dot Series Slice Strip bars donut lines scatter strips",
            "html_page":
                "Cell DrawnAtWidth Program Section figure folded listing page paragraph placeholder "
                "preformatted readable_json side_by_side style_sheet table",
            "layout":
                "Column Entry Line PIPED_WIDTH Span cut display_width plain shortened terminal_table "
                "terminal_width text_of wrapped",
            "scales": "count dollars_text short",
            "svg": "Axis Html joined tag tone_at",
            "terminal":
                "STYLES ScatterPoint bar chart chart_columns rule terminal_bars terminal_scatter zone",
        },
    )
