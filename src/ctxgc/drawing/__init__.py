"""Charts and pages as text: SVG and HTML that need no network and no script, and plots for a terminal.

`svg` draws, `page` puts drawings and tables on one self-contained page, `terminal` does the same with
characters. Everything here is pure: values in, text out, the same bytes each time.
"""
