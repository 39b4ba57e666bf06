"""Write or check the goldens.

python -m tools.golden list             their names
python -m tools.golden check [NAME...]  compare what ctxgc answers with the files
python -m tools.golden write [NAME...]  write the files anew
python -m tools.golden inputs           write the stored sessions anew, by the code as it is: they show
                                        that sessions of older code go on, so do this only when the
                                        stores have a new version, and keep the old ones beside them
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from tools.golden import goldens, served, stored


def main(arguments: list[str]) -> int:
    """Run the command; 1 when a golden differs, 2 when the call is wrong."""
    book = goldens()
    verb, names = (arguments or [""])[0], arguments[1:] or book.names()
    unknown = sorted(set(names) - set(book.names()))
    if verb == "inputs":
        with tempfile.TemporaryDirectory() as folder:
            stored.write_inputs(Path(folder).resolve())
            served.write_inputs(Path(folder).resolve())
        return 0
    if verb not in ("list", "check", "write") or unknown:
        print(f"no goldens: {', '.join(unknown)}" if unknown else __doc__, file=sys.stderr)
        return 2
    if verb == "list":
        print("\n".join(names))
        return 0
    if verb == "write":
        for name in names:
            print(f"{'wrote' if book.write(name) else 'same '}  {name}", flush=True)
        return 0
    differences = [text for text in map(book.difference, names) if text]
    print("\n\n".join(differences) or f"{len(names)} goldens, no difference")
    return int(bool(differences))


if __name__ == "__main__":
    logging.getLogger("ctxgc").setLevel(logging.ERROR)  # sessions warn of a window that fills
    sys.exit(main(sys.argv[1:]))
