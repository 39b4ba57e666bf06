"""The scripted coding agent: one invented project, its tools, its tasks, and realistic histories.

`project` has the files, functions and faults; `tools` the tools and the steps that the agent takes with
them; `stories` the tasks; `render` puts steps into each provider's format; `session` makes whole
sessions. The same seed always gives the same session. The tests, the lab's corpus and the demo use it,
through the face of `ctxgc.testing`.
"""
