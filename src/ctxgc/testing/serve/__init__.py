"""The parts of the strict server.

`provider` handles one request, `refusals` checks it and words the errors, `cache` counts its tokens and
cache hits, `reply` and `answer_*` write the answer in each protocol, `settings` has the options and the
planned faults, and `app` is the HTTP service.
"""

from __future__ import annotations
