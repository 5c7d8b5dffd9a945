"""A program in place of `python -m vllm...`: notes how it was started, and serves by the fake.

python fake_vllm_program.py NOTES -m MODULE --model FOLDER --port PORT ...
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path

from fake_vllm_server import FakeVLLMServer

if __name__ == "__main__":
    notes, *arguments = sys.argv[1:]
    told = dict(itertools.pairwise(arguments))
    server = FakeVLLMServer(Path(told["--model"]), int(told["--port"]))
    noted = {"arguments": arguments, "environment": dict(os.environ), "number": os.getpid()}
    Path(notes).write_text(json.dumps(noted))
    time.sleep(600)
