"""Gather and use: scripted sessions with a known answer, and whether a view still holds what it needs.

`things` are the texts that are fetched and `tools` the calls that fetch them; a family of `families` plays
its script on a `stage`, and `tasks` makes a session of it. `judge` plays one through a policy, `suite` many
through all, and `tables` shows what was found.
"""
