"""The default strategy, gc_mark_sweep: the price pass, the room pass, and what both are made of."""
