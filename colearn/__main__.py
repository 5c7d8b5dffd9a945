"""Entry point of `python -m colearn`."""

import os
import sys

if __name__ == "__main__":
    # `-m` puts the current folder first, where a file `json.py` would shadow Python's
    if not sys.flags.safe_path and sys.path[0] == os.getcwd():
        del sys.path[0]

    from colearn.entry.cli import main

    main()
