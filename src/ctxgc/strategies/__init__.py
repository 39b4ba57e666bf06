"""Collection strategies, each a `GCPlugin` that is found through its entry point.

`none` keeps all; `truncate` drops the oldest turns; `summarize` and `hybrid` compress them;
`budget` goes by policy; `mark_sweep`, the default, goes by reachability and loses nothing.
"""
