"""Faults planted by hand, one at a time: which fast test of their area falls.

    python benchmarks/planted.py [NAME ...]

Each fault is one change of one place in a copy of the repository. A fault that no test notices is a
hole in the tests. Random small changes of the core are `mutations.py`'s.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Fault:
    """A change of one file, and the tests of its area, below tests/unit."""

    name: str
    file: str
    old: str
    new: str
    tests: str


FAULTS = (
    Fault(
        "gateway: an agent's returned reward is paid to all agents",
        "colearn/gateway/payments.py",
        "if event.turn is not None and event.call.name == name\n",
        "if event.turn is not None\n",
        "gateway",
    ),
    Fault(
        "gateway: an agent's posted reward is paid to all agents",
        "colearn/gateway/payments.py",
        "if paid.request == event.call.request or paid.agent == event.call.name",
        "if paid.request == event.call.request or paid.agent is not None",
        "gateway",
    ),
    Fault(
        "gateway: a request's posted reward is paid to all its agent's actions",
        "colearn/gateway/payments.py",
        "if paid.request == event.call.request or paid.agent == event.call.name",
        "if paid.request is not None or paid.agent == event.call.name",
        "gateway",
    ),
    Fault(
        "gateway: a failed program keeps its result's reward",
        "colearn/gateway/task.py",
        "        if live.failure is not None:\n            return",
        "        if False:\n            return",
        "gateway",
    ),
    Fault(
        "gateway: a request with an answer the agent did not give continues its context",
        "colearn/gateway/contexts.py",
        'return "others" if any(role == "assistant" for role, _ in new) else "continued"',
        'return "continued"',
        "gateway",
    ),
    Fault(
        "sampling: top-p drops the token that crosses the limit",
        "colearn/generate/sampling.py",
        "(above >= self._top_p)",
        "(above + probabilities > self._top_p)",
        "generate",
    ),
    Fault(
        "sampling: log-probabilities are those of the cut distribution",
        "colearn/generate/sampling.py",
        "            kept_logits = self.cut(logits) if self._cuts else logits\n",
        "            logits = kept_logits = self.cut(logits) if self._cuts else logits\n"
        "            normaliser = logits.logsumexp(-1)\n",
        "generate",
    ),
    Fault(
        "ahead: generators receive weights at every update",
        "colearn/experiment/stale_rollouts.py",
        "        if at.iteration % self._staleness:\n            return False\n",
        "",
        "experiment",
    ),
    Fault(
        "ahead: a resumed run grows the pending iterations with the newest weights",
        "colearn/experiment/stale_rollouts.py",
        "        older.put()\n        self._publish()\n",
        "        self._publish()\n",
        "experiment",
    ),
    Fault(
        "ahead: all iterations of a block draw the same items",
        "colearn/experiment/stale_rollouts.py",
        "            episodes=source.episodes + ahead * self._episodes.count,\n",
        "            episodes=source.episodes,\n",
        "experiment",
    ),
    Fault(
        "ahead: all iterations of a block have the temperature of its start",
        "colearn/experiment/stale_rollouts.py",
        "return min(1.0, source.done * (source.iteration + ahead) / source.iteration)",
        "return source.done",
        "experiment",
    ),
    Fault(
        "ahead: the reported staleness is the setting",
        "colearn/experiment/stale_rollouts.py",
        "self.lag = at.iteration - source.iteration",
        "self.lag = self._staleness",
        "experiment",
    ),
    Fault(
        "counterfactual: an agent's own answer stands before its alternatives",
        "colearn/critic/counterfactual.py",
        "                    if actor != agent:\n",
        "                    if actor:\n",
        "critic",
    ),
    Fault(
        "counterfactual: the history loses the joint action",
        "colearn/critic/counterfactual.py",
        "executed = answer  # the joint",
        "pass  # the joint",
        "critic",
    ),
    Fault(
        "counterfactual: alternatives are trained on the executed action's target",
        "colearn/critic/counterfactual.py",
        "alternatives=False)",
        "alternatives=True)",
        "critic",
    ),
    Fault(
        "counterfactual: an alternative is read where its answer begins",
        "colearn/critic/counterfactual.py",
        "packer.read(node.index, answer, inside, agent)",
        "packer.read(node.index, shared if number else answer, inside, agent)",
        "critic",
    ),
    Fault(
        "served adapters: the first version is answered for ever",
        "colearn/generate/vllm_adapters.py",
        "        self.loaded[name] = new\n",
        "        self.loaded.setdefault(name, new)\n",
        "generate",
    ),
    Fault(
        "served adapters: previous versions stay loaded",
        "colearn/generate/vllm_adapters.py",
        "            self._call_unload(previous)\n",
        "",
        "generate",
    ),
    Fault(
        "served adapters: a new version has the weights of the first",
        "colearn/generate/vllm_adapters.py",
        "            write_adapter_weights(folder, tensors)\n",
        "",
        "generate",
    ),
    Fault(
        "served adapters: a role without an adapter speaks with another's",
        "colearn/generate/vllm_adapters.py",
        "return self.loaded.get(_ZEROS) if adapter is None else self.loaded[adapter]",
        "return self.loaded[adapter or self.names[0]]",
        "generate",
    ),
    Fault(
        "export: generate stops at one of the end tokens",
        "colearn/export/agent_folders.py",
        "eos_token_id=sorted(chat.end_ids),",
        "eos_token_id=min(chat.end_ids),",
        "export",
    ),
    Fault(
        "export: top-k is left out, which is 50 in transformers",
        "colearn/export/agent_folders.py",
        '            "top_k": sampling.top_k or 0,  # 0 is off; left out it would be 50\n',
        "",
        "export",
    ),
    Fault(
        "export: the adapter is not folded in",
        "colearn/export/weights.py",
        "        model = merged(base.model, network.adapter)\n",
        "        pass\n",
        "export",
    ),
    Fault(
        "export: the window is not written",
        "colearn/export/agent_folders.py",
        "        window=settings.window,\n",
        "",
        "export",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the faults' names; all by default")
    chosen = parser.parse_args().names
    print("| fault | test that falls |\n|---|---|")
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(".*"))
        for fault in FAULTS:
            if chosen and not any(name in fault.name for name in chosen):
                continue
            test = falls(fault, copy)
            missed += test is None
            print(f"| {fault.name} | {f'`{test}`' if test else 'none'} |", flush=True)
    sys.exit(int(missed > 0))


def falls(fault: Fault, copy: Path) -> str | None:
    """The first fast test that falls with the fault; None if none does."""
    path = copy / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.file} does not have the text once")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "fast", "-p", "no:cacheprovider"]
    tests = f"tests/unit/{fault.tests}"
    ended = subprocess.run(
        [*command, tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )
    path.write_text(text, encoding="utf-8")
    fallen = re.search(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)
    if fallen is None and ended.returncode != 0:
        raise SystemExit(f"{fault.name}: pytest ended with {ended.returncode}\n{ended.stdout}")
    return None if fallen is None else fallen[1]


if __name__ == "__main__":
    main()
