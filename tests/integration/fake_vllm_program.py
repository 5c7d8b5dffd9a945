"""A program in place of `python -m vllm...`: notes how it was started, and serves a model that says
token 5 with log-probability -1, without torch, whose import takes seconds.

python fake_vllm_program.py NOTES -m MODULE --model FOLDER --port PORT ...
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

notes, *arguments = sys.argv[1:]
told = dict(itertools.pairwise(arguments))
tokenizer = Tokenizer.from_file(f"{told['--model']}/tokenizer.json")
version = "default"


def answer(path: str, body: Any) -> tuple[int, Any]:
    global version
    match path:
        case "/v1/models":
            return 200, {"data": [{"id": "base", "max_model_len": 4096}]}
        case "/tokenize":
            return 200, {"tokens": tokenizer.encode(body["prompt"], add_special_tokens=False).ids}
        case "/server_info":
            return 200, {"vllm_config": {"model_config": {"logprobs_mode": "processed_logprobs"}}}
        case "/update_weight_version":
            version = body["new_version"]
        case "/inference/v1/generate" if not body:
            return 400, None
        case "/inference/v1/generate":
            tokens = [5] * body["sampling_params"]["max_tokens"]
            choice = {
                "finish_reason": "length",
                "token_ids": tokens,
                "logprobs": {"content": [{"token_id": 5, "logprob": -1.0} for _ in tokens]},
                "weight_versions": [{"version": version}],
            }
            return 200, {"choices": [choice], "usage": {}}
    return 200, {"success": True}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length) or b"null")
        status, given = answer(self.path.partition("?")[0], body)
        raw = json.dumps(given).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST


if __name__ == "__main__":
    noted = {"arguments": arguments, "environment": dict(os.environ), "number": os.getpid()}
    Path(notes).write_text(json.dumps(noted))
    ThreadingHTTPServer(("127.0.0.1", int(told["--port"])), Handler).serve_forever()
