"""CoLLM-CC and MAGRPO on vLLM servers and on the default generator: `colearn compare` and the gaps.

    python benchmarks/served_comparison.py --python .venv-vllm/bin/python --out comparison

The comparison is that of `configs/tiny/vllm_server.yaml`, with one pair of servers for all of its
runs. Printed are the largest `parity_gap` over all updates, by entry, and how many there were.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import yaml
from _servers import served

CONFIG = Path(__file__).parent.parent / "configs" / "tiny" / "vllm_server.yaml"


def gaps(folder: Path) -> dict[str, list[float]]:
    """By run, the gap of every check after an update."""
    found: dict[str, list[float]] = defaultdict(list)
    for path in sorted(folder.glob("**/metrics.jsonl")):
        for line in path.read_text().splitlines():
            metrics = json.loads(line)["metrics"]
            found[path.parent.name] += [
                value for key, value in metrics.items() if key.startswith("parity_gap/")
            ]
    return {name: values for name, values in found.items() if values}


def main() -> None:
    from colearn.config import Config, build_task
    from colearn.models.embedded import embedded_model

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--python", help="interpreter of the environment with vLLM")
    parser.add_argument("--steps", type=int, help="joint actions of a run; the config's own")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    config = yaml.safe_load(CONFIG.read_text())
    compared = config.pop("compare") | {"seeds": list(range(options.seeds)), "workers": 1}
    if options.steps:
        config["train"]["environment_steps"] = options.steps
    sections = {name: config[name] for name in ("task", "models", "agents", "train")}
    task = build_task(Config.model_validate(sections | {"algorithm": {"name": "magrpo"}}))
    config["compare"] = compared
    options.out.mkdir(parents=True, exist_ok=True)
    model = embedded_model(task, "embedded-vllm", "models")
    with served(model, task.agents, options.python) as urls:
        for entry in compared["algorithms"].values():
            if "run.generator" in entry:
                entry["run.generator"] = {"name": "vllm_server", "url": dict(urls)}
        path = options.out / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "colearn", "compare", str(path)]
        code = subprocess.call([*command, "--out", str(options.out / "comparison")])
    for name, values in gaps(options.out / "comparison").items():
        print(f"{name}: largest gap {max(values):.2g} nats over {len(values)} checks")
    sys.exit(code)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
