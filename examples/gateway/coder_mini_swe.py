"""Two coding agents of mini-swe-agent in one folder: a coder, then a reviewer who may correct it.

Each runs one command of the folder's, `red`, `green` or `blue`, which sets the lamp and submits.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import lamp_issues

os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
os.environ.setdefault("MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", "1")  # refused once, refused always
os.environ.setdefault("MSWEA_COST_TRACKING", "ignore_errors")  # no price list has these models
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # and none is downloaded

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel
from worker import main

SET = "#!/bin/sh\nprintf {0} > lamp.txt\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n"


def work(name: str, url: str, folder: Path, task: str) -> str:
    """Runs an agent in the folder; returns the colour of the lamp after it."""
    model = LitellmTextbasedModel(
        model_name=f"openai/{name}",  # `openai/`: litellm's name for any server of that API
        model_kwargs={"api_base": url, "api_key": "unused", "max_retries": 0},
        action_regex=rf"\b(?:{'|'.join(lamp_issues.COLOURS)})\b",
    )
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    shell = LocalEnvironment(cwd=str(folder), env={"PATH": path})
    templates = {
        "system_template": "Answer with one command.",
        "instance_template": "{{task}}",
    }
    DefaultAgent(model, shell, **templates, step_limit=2).run(task)
    return (folder / "lamp.txt").read_text()


def team(item: Mapping[str, str], endpoints: Mapping[str, str]) -> dict[str, str]:
    """Runs both agents on one issue."""
    issue = f"The lamp of the {item['room']} must be {item['colour']}."
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lamp.txt").write_text("off")
        for colour in lamp_issues.COLOURS:
            (folder / colour).write_text(SET.format(colour))
            (folder / colour).chmod(0o755)
        coder = work("coder", endpoints["coder"], folder, issue)
        review = f"{issue} The coder made it {coder}. Correct it."
        reviewer = work("reviewer", endpoints["reviewer"], folder, review)
    return {"coder": coder, "reviewer": reviewer}


async def play(item: Mapping[str, str], endpoints: Mapping[str, str]) -> dict[str, str]:
    """Plays an episode in a thread of its own: the agents block until they are answered."""
    return await asyncio.to_thread(team, item, endpoints)


if __name__ == "__main__":
    main(play, list(lamp_issues.items("test")), lamp_issues.grade)
