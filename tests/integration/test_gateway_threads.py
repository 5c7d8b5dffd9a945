"""Programs that call their agents in threads, behind the worker that the examples share."""

from __future__ import annotations

import sys
from pathlib import Path

from colearn.contract.types import Action
from colearn.rollout.agents import AgentSpec, ChatFormat
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from tests.helpers.gateway_programs import RNG, gateway
from tests.helpers.scripted_voice import Scripted, language_players
from tests.helpers.tiny import byte_tokenizer

EXAMPLES = Path(__file__).parents[2] / "examples" / "gateway"
YES = Action("yes", (5, 6), (-1.0, -1.0), "end")
LIVE = 40
"""Episodes at once: more than the threads that asyncio starts by itself, which are 32 at most."""

PROGRAM = f"""
import asyncio, json, sys, urllib.request
sys.path.insert(0, {str(EXAMPLES)!r})
from worker import main

def ask(url, text):
    body = json.dumps({{"messages": [{{"role": "user", "content": text}}]}}).encode()
    with urllib.request.urlopen(f"{{url}}/chat/completions", body, timeout=600) as answer:
        return json.loads(answer.read())["choices"][0]["message"]["content"]

async def play(item, endpoints):
    told = await asyncio.to_thread(ask, endpoints["one"], item)
    return float(await asyncio.to_thread(ask, endpoints["two"], told) == item)

main(play, [], None)
"""


def test_episodes_that_wait_for_each_other_may_all_ask_in_threads(tmp_path):
    """In lockstep no answer comes before every live episode has asked: a thread that is held until
    its answer is no thread for another episode."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = (sys.executable, str(tmp_path / "program.py"))
    task = gateway(None, command=command, workers=1)
    states = []
    for _ in range(LIVE):
        states.append(task.reset("owl", RNG))
        assert states[-1].failure is None
    for agent in ("one", "two"):
        assert all(list(state.next_calls()) == [agent] for state in states)
        states = [task.step(state, {agent: "owl"}, RNG).state for state in states]
    assert [state.measured["reward"] for state in states] == [1.0] * LIVE


TOGETHER = f"""
import asyncio, json, sys, urllib.request
sys.path.insert(0, {str(EXAMPLES)!r})
from worker import main

HERE = [asyncio.Barrier({LIVE}), asyncio.Barrier({LIVE}), asyncio.Barrier({LIVE})]

def ask(url, text):
    body = json.dumps({{"messages": [{{"role": "user", "content": text}}]}}).encode()
    with urllib.request.urlopen(f"{{url}}/chat/completions", body, timeout=600) as answer:
        return json.loads(answer.read())["choices"][0]["message"]["content"]

async def play(item, endpoints):
    for barrier in HERE:
        async with asyncio.timeout(600):
            await barrier.wait()
        said = await asyncio.to_thread(ask, endpoints["one"], item)
    return float(said == "yes")

main(play, [], None)
"""


def test_in_lockstep_the_programs_of_all_episodes_start_and_go_on_together(tmp_path):
    """Each waits for all others before each of its requests."""
    (tmp_path / "program.py").write_text(TOGETHER)
    task = gateway(None, command=(sys.executable, str(tmp_path / "program.py")), workers=1)
    voice = AgentSpec(chat=ChatFormat(byte_tokenizer()))
    players = language_players(Scripted(YES), {"one": voice, "two": voice})
    trees, _ = grow(task, ["owl"] * LIVE, players, Chain(), seed=0, order="lockstep")
    assert [tree.nodes[-1].metrics["reward"] for tree in trees] == [1.0] * LIVE
    assert [len(tree.nodes) for tree in trees] == [4] * LIVE
