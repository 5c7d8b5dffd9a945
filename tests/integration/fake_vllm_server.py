"""A vLLM server's HTTP interface over a second copy of the model, with faults on demand."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import torch
from fake_engine import drawn_action
from peft import PeftModel
from quiet_server import QuietServer
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from colearn.contract import Sampling
from colearn.models.base import Base

Answer = tuple[int, Any]


class FakeVLLMServer:
    """Serves the model of a folder on a port of this machine until `close`.

    Faults: `skip` ignores what is loaded, `silent` answers neither requests nor health checks,
    `gone` ends every connection, `statuses` gives the answer to a path instead of its own.
    """

    def __init__(self, folder: Path, port: int = 0, **options: Any) -> None:
        self.folder = folder
        self.options = {"max_loras": 4, "max_lora_rank": 16, "lora": True, "dev": True} | options
        self.skip = self.silent = self.gone = self.asleep = False
        self.statuses: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.draws: list[dict[str, Any]] = []
        """Bodies of requests for tokens."""
        self.tokens: set[str | None] = set()
        self.lock = threading.Lock()
        self.release = threading.Event()
        self.start()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.answer({})

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                self.answer(json.loads(self.rfile.read(length) or b"null") or {})

            def answer(self, body: dict[str, Any]) -> None:
                path = self.path.partition("?")[0]
                server.asked.append(path)
                server.tokens.add(self.headers.get("authorization"))
                if server.silent:
                    server.release.wait()
                if server.gone or server.silent:
                    self.close_connection = True
                    return
                status, answer = server.statuses.get(path) or server.answer(self.path, body)
                raw = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        self.http = QuietServer(Handler, port)
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return self.http.url

    def start(self) -> None:
        """Also a restart: the folder's weights, no adapter, and vLLM's first version."""
        causal = AutoModelForCausalLM.from_pretrained(self.folder)
        self.tokenizer = AutoTokenizer.from_pretrained(self.folder)
        self.base = Base(causal)
        self.adapters: dict[str, Base] = {}
        self.version = "default"

    def close(self) -> None:
        self.release.set()
        self.http.shutdown()
        self.http.server_close()

    def answer(self, address: str, body: Mapping[str, Any]) -> Answer:
        path, _, query = address.partition("?")
        with self.lock:
            if path == "/server_info" and query != "config_format=json":
                return 200, {"vllm_config": "as text"}
            return getattr(self, "on" + path.replace("/", "_"), self.on_nothing)(body)

    def on_nothing(self, body: Mapping[str, Any]) -> Answer:
        return 404, {"detail": "Not Found"}

    def on_health(self, body: Mapping[str, Any]) -> Answer:
        return 200, None

    def on_v1_models(self, body: Mapping[str, Any]) -> Answer:
        card = {"id": "base", "root": str(self.folder), "parent": None, "max_model_len": 4096}
        adapters = [{"id": name, "parent": "base"} for name in self.adapters]
        return 200, {"data": [card, *adapters]}

    def on_tokenize(self, body: Mapping[str, Any]) -> Answer:
        special = body.get("add_special_tokens", True)
        return 200, {"tokens": self.tokenizer.encode(body["prompt"], add_special_tokens=special)}

    def on_server_info(self, body: Mapping[str, Any]) -> Answer:
        if not self.options["dev"]:
            return self.on_nothing(body)
        lora = {name: self.options[name] for name in ("max_loras", "max_lora_rank")}
        mode = self.options.get("logprobs_mode", "processed_logprobs")
        return 200, {
            "vllm_config": {
                "model_config": {"logprobs_mode": mode},
                "lora_config": lora if self.options["lora"] else None,
            }
        }

    def on_collective_rpc(self, body: Mapping[str, Any]) -> Answer:
        if body["method"] == "score_before_cuts":
            return (200 if self.options.get("cuts", True) else 500), {"results": [None]}
        if not self.skip:
            weights = load_file(Path(body["kwargs"]["weights_path"]) / "model.safetensors")
            own = self.base.causal.state_dict()
            for name, tensor in weights.items():
                own[name].copy_(tensor)
        return 200, {"results": [None]}

    def on_reset_prefix_cache(self, body: Mapping[str, Any]) -> Answer:
        return 200, {"success": True}

    def on_sleep(self, body: Mapping[str, Any]) -> Answer:
        self.asleep = True
        return 200, {"status": "sleeping"}

    def on_wake_up(self, body: Mapping[str, Any]) -> Answer:
        self.asleep = False
        return 200, {"status": "awake"}

    def on_update_weight_version(self, body: Mapping[str, Any]) -> Answer:
        self.version = body["new_version"]
        return 200, {"success": True}

    def on_v1_load_lora_adapter(self, body: Mapping[str, Any]) -> Answer:
        if not body:
            return 400, {"error": {"message": "lora_name: field required"}}
        if body["lora_name"] in self.adapters:
            return 400, {"error": {"message": "the adapter has already been loaded"}}
        if self.skip and self.adapters:  # the tensors of the first one under the new name
            self.adapters[body["lora_name"]] = next(iter(self.adapters.values()))
            return 200, None
        with torch.random.fork_rng():
            adapted = PeftModel.from_pretrained(copy.deepcopy(self.base.causal), body["lora_path"])
        self.adapters[body["lora_name"]] = Base(adapted.merge_and_unload())
        return 200, None

    def on_v1_unload_lora_adapter(self, body: Mapping[str, Any]) -> Answer:
        if self.adapters.pop(body["lora_name"], None) is None:
            return 404, {"error": {"message": "the adapter cannot be found"}}
        return 200, None

    def on_v1_completions(self, body: Mapping[str, Any]) -> Answer:
        """The scores of a prompt's tokens, none for its first."""
        prompt = torch.tensor([body["prompt"]])
        with torch.no_grad():
            logits = self.base.causal(input_ids=prompt).logits[0]
        scores = logits.float().log_softmax(-1)[:-1].gather(1, prompt[0, 1:, None])[:, 0].tolist()
        entries: list[Any] = [None]
        for token, logprob in zip(body["prompt"][1:], scores, strict=True):
            entries.append({str(token): {"logprob": logprob, "rank": 1, "decoded_token": "x"}})
        return 200, {"choices": [{"text": "x", "prompt_logprobs": entries}]}

    def on_inference_v1_generate(self, body: Mapping[str, Any]) -> Answer:
        if not body:
            return 400, {"error": {"message": "token_ids: field required"}}
        self.draws.append(dict(body))
        if self.asleep:
            return 500, {"error": {"message": "the engine is asleep"}}
        name, params = body["model"], body["sampling_params"]
        if name != "base" and name not in self.adapters:
            return 404, {"error": {"message": f"The model `{name}` does not exist."}}
        sampling = Sampling(
            temperature=params["temperature"],
            top_p=params["top_p"],
            top_k=params["top_k"] or None,
            max_tokens=params["max_tokens"],
            stop=tuple(params["stop"]),
        )
        base, ends = self.adapters.get(name, self.base), params["stop_token_ids"]
        tokens, logprobs = drawn_action(
            base, self.tokenizer, body["token_ids"], sampling, params["seed"], ends
        )
        whole = len(tokens) == params["max_tokens"]
        return 200, {
            "usage": {"prompt_tokens_details": {"cached_tokens": 0}},
            "choices": [
                {
                    "finish_reason": "length" if whole else "stop",
                    "token_ids": tokens,
                    "logprobs": {
                        "content": [
                            {"token_id": token, "logprob": logprob}
                            for token, logprob in zip(tokens, logprobs, strict=True)
                        ]
                    },
                    "weight_versions": [{"version": self.version, "start": 0, "end": 1}],
                }
            ],
        }
