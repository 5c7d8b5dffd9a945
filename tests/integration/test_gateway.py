"""A program's requests are the turns of an episode."""

from __future__ import annotations

import json
import signal
import sys
import threading
from dataclasses import replace

import httpx
import pytest
from openai import OpenAI

from colearn.errors import ConfigError, TaskError
from colearn.programs.gateway import programs
from colearn.rollout.agents import Program
from colearn.rollout.agents.programs import Says
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.text.notes import note_once
from tests.helpers import gateway_programs
from tests.helpers.gateway_programs import RNG, episode, gateway
from tests.helpers.scripted_voice import scripted_players


def always(text):
    return lambda agent, prompt: text


def test_a_request_is_a_turn_and_the_return_value_is_the_reward():
    states = episode(gateway("relay"), lambda agent, prompt: "owl")
    assert [state.turn for state in states] == [0, 1, 2, 3]
    assert [event.call.name for event in states[-1].events] == ["one", "two", "two"]
    assert states[-1].measured["reward"] == 1.0
    assert states[-1].failure is None


def test_messages_that_extend_what_was_said_continue_the_context():
    task = gateway("relay")
    states = episode(task, lambda agent, prompt: "owl")
    prompts = [event.call.prompt for event in states[-1].events]
    assert [(p.fresh, p.system, p.text) for p in prompts] == [
        (True, None, "say owl"),
        (True, "You repeat.", "heard owl"),
        (False, None, "again"),
    ]
    metrics = task.metrics(states[-1])
    assert (metrics["requests"], metrics["continued"], metrics["reopened"]) == (3.0, 1.0, 0.0)


def test_a_context_that_does_not_continue_says_why():
    measured = episode(gateway("rewrites"), always("yes"))[-1].measured
    reasons = {name: value for name, value in measured.items() if name.startswith("reopened_")}
    assert reasons == {
        "reopened_rewritten": 1.0,
        "reopened_reordered": 1.0,
        "reopened_new": 1.0,
        "reopened_others": 1.0,
        "reopened_dropped": 1.0,
        "reopened_system": 1.0,
    }


def test_a_tool_call_is_read_and_its_result_is_context():
    call = '<tool_call>{"name": "look", "arguments": {"at": "sky"}}</tool_call>'
    final = episode(gateway("tools"), always(call))[-1]
    assert final.failure is None
    first, second = (event.call.prompt for event in final.events)
    assert "look" in first.system
    assert (second.fresh, second.text) == (False, "<tool_response>TAINT</tool_response>")


def test_requests_at_once_are_answered():
    final = episode(gateway("both"), always("yes"))[-1]
    assert sorted(event.call.name for event in final.events) == ["one", "two"]


def test_rewards_go_to_the_team_an_agent_and_a_call():
    task = gateway("pays")
    first = task.reset("owl", RNG)
    second = task.step(first, {"one": "x"}, RNG).state
    last = task.step(second, {"two": "y"}, RNG)
    assert last.reward == 9.0
    assert last.local_rewards == {"two": 2.0}
    assert last.earned == {(0, "one"): 20.0}


@pytest.mark.parametrize("program", ["hangs", "dies", "endless"])
def test_a_program_that_has_not_ended_is_truncated_unless_its_failure_has_a_reward(program):
    timeout = 0.2 if program == "hangs" else 600.0
    for settings, truncated in (({}, True), ({"failure_reward": -1.0}, program == "endless")):
        task = gateway(program, timeout=timeout, horizon=3, **settings)
        state, outcome = task.reset("owl", RNG), None
        while outcome is None or not outcome.done:
            asked = [a for a in task.agents if task.observe(state, a) is not None]
            outcome = task.step(state, dict.fromkeys(asked, "x"), RNG)
            state = outcome.state
        assert outcome.truncated is truncated
        assert outcome.reward == (0.0 if truncated else -1.0)


def test_parallel_branches_are_runs_of_their_own():
    task = gateway("relay")
    root = task.reset("owl", RNG)
    ends = []
    for text in ("owl", "bee", "fox"):
        state = task.step(root, {"one": text}, RNG).state
        while not state.finished:
            state = task.step(state, {"two": "owl"}, RNG).state
        ends.append(state)
    assert [end.measured["reward"] for end in ends] == [1.0, 0.0, 0.0]
    assert len({end.episode for end in ends}) == 3


def test_a_program_goes_on_with_an_answer_that_is_sent_before_its_step(monkeypatch):
    monkeypatch.setattr(programs.FunctionProgram, "concurrent", True)
    task = gateway("relay")
    root = task.reset(task.prepare("owl"), RNG)
    sent = task.send(root, {"one": "owl"})
    task.server.at(root.episode).wait(600)
    (request,) = task.server.at(root.episode)._queue
    assert (request.agent, request.body.messages[-1].text) == ("two", "heard owl")
    state = task.step(sent, {"one": "owl"}, RNG).state
    assert (state.item, state.contexts["one"].said[-1]) == ("owl", ("assistant", "owl"))
    while not state.finished:
        state = task.step(state, {"two": "owl"}, RNG).state
    assert (state.episode, state.measured["reward"]) == (root.episode, 1.0)


def test_only_the_first_of_parallel_branches_sends_its_answer_to_the_prepared_run(monkeypatch):
    monkeypatch.setattr(programs.FunctionProgram, "concurrent", True)
    task = gateway("relay")
    root = task.reset(task.prepare("owl"), RNG)
    ends = []
    first, second = (task.send(root, {"one": text}) for text in ("owl", "bee"))
    assert second is root
    for sent, text in ((first, "owl"), (second, "bee")):
        state = task.step(sent, {"one": text}, RNG).state
        while not state.finished:
            state = task.step(state, {"two": "owl"}, RNG).state
        ends.append(state)
    assert [end.measured["reward"] for end in ends] == [1.0, 0.0]
    assert (ends[0].episode == root.episode, ends[1].episode == root.episode) == (True, False)


def test_a_parallel_run_may_ask_another_agent_first(monkeypatch):
    monkeypatch.setitem(gateway_programs.FIRST, "owl", "one")
    task = gateway("takes_turns")
    root = task.reset("owl", RNG)
    assert set(root.next_calls()) == {"one"}
    task.step(root, {"one": "x"}, RNG)
    second = task.step(root, {"one": "y"}, RNG).state
    assert (second.failure, set(second.next_calls())) == (None, {"two"})


def test_a_parallel_run_that_asks_another_agent_alone_is_an_error(monkeypatch):
    monkeypatch.setitem(gateway_programs.FIRST, "owl", "one")
    task = gateway("swaps", timeout=1.5)
    root = task.reset("owl", RNG)
    task.step(root, {"one": "x"}, RNG)
    with pytest.raises(TaskError, match="asks 'one' something else"):
        task.step(root, {"one": "y"}, RNG)


def test_a_later_fork_is_an_error():
    task = gateway("relay")
    state = task.step(task.reset("owl", RNG), {"one": "owl"}, RNG).state
    task.step(state, {"two": "owl"}, RNG)
    with pytest.raises(TaskError, match=r"cannot be forked .* chain or parallel"):
        task.step(state, {"two": "bee"}, RNG)


def test_parallel_runs_that_ask_something_else_are_an_error():
    task = gateway("counts")
    root = task.reset("owl", RNG)
    task.step(root, {"one": "x"}, RNG)
    with pytest.raises(TaskError, match="asks 'one' something else"):
        task.step(root, {"one": "y"}, RNG)


def test_an_algorithm_that_forks_later_is_refused_before_anything_runs():
    from colearn.registry import algorithm_class

    with pytest.raises(ConfigError, match=r"^algorithm\.rollout: KaryTree forks"):
        algorithm_class("magrpo")().check_task(gateway("relay"))


def test_an_unknown_episode_is_404_and_an_ended_one_410():
    task = gateway("relay")
    final = episode(task, always("owl"))[-1]
    for name, status in (("0-guess", 404), (final.episode, 410)):
        url = f"{task.server.address}/episodes/{name}/one/v1/chat/completions"
        body = {"messages": [{"role": "user", "content": "a"}]}
        assert httpx.post(url, json=body).status_code == status
    base = f"{task.server.address}/episodes/{final.episode}/one/chat/completions"
    answer = httpx.post(base, json=body)
    assert (answer.status_code, "it ends in /v1" in answer.text) == (404, True)


@pytest.mark.parametrize("stream", [False, True])
def test_an_openai_client_is_answered(stream):
    """Streamed or whole; stop strings end what the program is told."""
    task = gateway("hangs", timeout=600)
    state = task.reset("owl", RNG)
    live = task.server.at(state.episode)
    client = OpenAI(base_url=task.server.endpoints(live)["two"], api_key="x", max_retries=0)
    from concurrent.futures import ThreadPoolExecutor

    def call():
        messages = [{"role": "user", "content": "go"}]
        answer = client.chat.completions.create(
            model="two", messages=messages, stream=stream, stop=["!"]
        )
        if not stream:
            return answer.choices[0].message.content
        return "".join(part.choices[0].delta.content or "" for part in answer)

    with ThreadPoolExecutor(2) as pool:
        told = pool.submit(call)
        state = task.step(state, {"one": "x"}, RNG).state
        waiting = pool.submit(task.step, state, {"two": "yes! no"}, RNG)
        assert told.result(600) == "yes"
        live.close()
        waiting.result(600)


def test_a_sampling_field_is_refused_unless_the_task_ignores_it(capsys):
    note_once.cache_clear()
    strict = episode(gateway("sets_top_p", timeout=600.0), always("x"))
    assert strict[-1].measured["reward"] == 0.0
    said = capsys.readouterr().err
    assert "a program ended without an answer; the last refused request, to 'one': 'top_p'" in said
    lenient = episode(gateway("sets_top_p", ignore=("top_p",)), always("x"))
    assert lenient[-1].measured["reward"] == 1.0
    with pytest.raises(
        ConfigError, match=r"^task\.ignore: 'temprature'; did you mean 'temperature'"
    ):
        gateway("warms_up", ignore=("temprature",))


@pytest.mark.parametrize(
    ("own", "ignore", "warnings"),
    [(0.5, (), 0), (1.0, (), 1), (None, (), 0), (1.0, ("temperature",), 0)],
)
def test_a_frameworks_temperature_is_taken_or_warned_of_once(own, ignore, warnings, capsys):
    """The program asks for 0.5, twice."""
    players, _ = scripted_players(("one", "two"), "yes")
    players = {
        name: Program(Says(text="yes")) if own is None else replace(player, temperature=own)
        for name, player in players.items()
    }
    task = gateway("warms_up", ignore=ignore)
    trees, _ = grow(task, ["owl", "bee"], players, Chain(), seed=0, order="free")
    assert [tree.nodes[-1].reward for tree in trees] == [1.0, 1.0]
    printed = capsys.readouterr().err
    line = "the program asks 'one' for temperature 0.5, and the agent's own, 1, applies; send no"
    assert printed.count("warning: gateway: ") == printed.count(line) == warnings


@pytest.mark.parametrize("play", ["plainly", "plainly_returns_a_coroutine", "called"])
def test_a_function_without_async_plays(play):
    states = episode(gateway(play), always("x"))
    assert (states[-1].failure, states[-1].measured["reward"]) == (None, 1.0)


def test_a_plain_function_may_start_an_event_loop_of_its_own():
    states = episode(gateway("starts_a_loop"), always("x"))
    assert (states[-1].failure, states[-1].measured["reward"]) == (None, 1.0)


@pytest.mark.parametrize(
    ("play", "line"),
    [
        ("takes_one", "too many positional arguments; write play"),
        ("takes_three", "missing a required argument: 'more'; write play"),
        ("yields", "the function yields; return the reward instead"),
        ("yields_async", "the function yields; return the reward instead"),
        ("LATE", "'tests.helpers.gateway_programs:LATE' is a float; name a function"),
    ],
)
def test_a_function_that_cannot_play_is_refused_before_the_first_run(play, line):
    with pytest.raises(ConfigError, match=rf"^task\.play: .*{line}") as error:
        gateway(play).reset("owl", RNG)
    assert "\n" not in str(error.value)


PROGRAM = """
import json, os, urllib.request
def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode())
    return json.loads(urllib.request.urlopen(request, timeout=600).read() or b"null")
item = json.loads(os.environ["COLEARN_ITEM"])
url = os.environ["COLEARN_URL_ONE"] + "/chat/completions"
told = post(url, {"messages": [{"role": "user", "content": item}]})
right = told["choices"][0]["message"]["content"] == item
post(os.environ["COLEARN_REWARD_URL"], {"value": float(right)})
"""


def test_a_command_is_given_urls_by_its_environment(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    task = gateway(None, command=(sys.executable, str(tmp_path / "program.py")))
    final = episode(task, always("owl"))[-1]
    assert (final.failure, final.measured["reward"]) == (None, 1.0)


WORKER = """
import json, os, urllib.request
def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode())
    return json.loads(urllib.request.urlopen(request, timeout=60).read() or b"null")
while True:
    given = post(os.environ["COLEARN_GATEWAY"], {})
    if given is None:
        continue
    url = given["endpoints"]["one"] + "/chat/completions"
    told = post(url, {"messages": [{"role": "user", "content": given["item"]}]})
    if told["choices"][0]["message"]["content"] == "die":
        raise SystemExit("as asked")
    post(given["end"], {"result": 1.0})
"""


def test_an_episode_that_no_worker_takes_says_so():
    task = gateway(None, command=("sleep", "60"), workers=1, timeout=0.3)
    assert task.reset("owl", RNG).failure.startswith("no worker took it within 0.3 seconds")


def test_workers_that_cannot_start_end_the_run_with_their_reason_and_not_by_time(monkeypatch):
    """Each of the episodes used to wait for the timeout: half an hour in all."""
    monkeypatch.setattr(programs, "_SOON", 0.01)
    command = (sys.executable, "-c", "import no_such_framework")
    task = gateway(None, command=command, workers=1, timeout=600)
    line = r"^task\.command: 32 programs in a row .*'no_such_framework'"
    with pytest.raises(TaskError, match=line):
        for _ in range(32):
            task.reset("owl", RNG)


def test_workers_play_one_episode_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "_SOON", 0.01)
    (tmp_path / "worker.py").write_text(WORKER)
    command = (sys.executable, str(tmp_path / "worker.py"))
    task = gateway(None, command=command, workers=1)
    for item in ("owl", "bee"):
        final = episode(task, always("yes"), item)[-1]
        assert (final.failure, final.measured["reward"]) == (None, 1.0)
    died = episode(task, always("die"))[-1]
    assert "as asked" in died.failure
    assert json.dumps(episode(task, always("yes"))[-1].failure) == "null"


def test_a_closed_task_has_ended_its_workers_and_its_server_and_can_be_used_again(tmp_path, capsys):
    (tmp_path / "worker.py").write_text(WORKER)
    command = (sys.executable, str(tmp_path / "worker.py"))
    task = gateway(None, command=command, workers=2)
    episode(task, always("yes"))
    address, running = task.server.address, children(command)
    assert len(running) == 2
    task.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/episodes/none/one/v1/models", timeout=600)
    for process in running:
        assert process.wait(600) == -signal.SIGKILL
    assert not [thread for thread in threading.enumerate() if thread.name == "gateway"]
    assert capsys.readouterr().err == ""
    assert episode(task, always("yes"))[-1].failure is None
    assert task.server.address != address


def test_a_closed_task_fails_the_episode_that_is_open():
    task = gateway("relay")
    state = task.reset("owl", RNG)
    live = task.server.at(state.episode)
    task.close()
    assert (live.over, live.failure) == (True, "the server was closed")


def test_a_program_that_requests_nothing_has_a_picture():
    task = gateway(None, command=("true",))
    final = task.reset("owl", RNG)
    assert (final.finished, final.failure) == (True, None)
    assert task.picture(final) is not None


def children(command):
    """The running processes of this command."""
    return [process for process in programs._running if tuple(process.args) == command]
