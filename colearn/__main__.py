"""`python -m colearn`."""

import os
import sys

if __name__ == "__main__":
    # `-m` puts the folder one stands in first, where a file `json.py` would stand before Python's
    if not sys.flags.safe_path and sys.path[0] == os.getcwd():
        del sys.path[0]

    from colearn.cli import main

    main()
