"""The real coding agents, driven by a scripted model on loopback: `python -m tools.real_agents AGENT`."""
