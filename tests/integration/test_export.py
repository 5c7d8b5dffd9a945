"""A run's agents as folders: what plain transformers, peft and vLLM make of them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from peft import PeftModel
from safetensors.torch import load_file
from tiny import register, save_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm_cases import byte_tokenizer, qwen

from colearn.config import load_config, resolve
from colearn.contract.types import Tree
from colearn.deploy.export import export_run, read_manifest, verify
from colearn.deploy.export.weights import check_adapter
from colearn.entry.cli import main
from colearn.errors import ConfigError
from colearn.runs.record import RunFolder
from colearn.runs.record.checksums import write_checksums
from colearn.training.evaluation.evaluate import evaluate_team
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment
from colearn.training.processes import Processes

ROLES = {"ada": "You are ADA, {{ the }} first.\n", "ben": "You are BEN, the second."}
LORA = {"rank": 4, "alpha": 32.0}


@pytest.fixture(scope="module", autouse=True)
def _notes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


def settings(model: str, **changes: Any) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "models": {"*": {"path": model, "learning_rate": 3e-2, "lora": LORA}},
        "agents": {
            agent: {"system": role, "sampling": {"max_tokens": 6, "temperature": 0.7}}
            for agent, role in ROLES.items()
        },
        "critic": {"path": model, "lora": LORA, "baseline": "none"},
        "train": {"environment_steps": 8, "episodes": 2},
        "run": {"device": "cpu", "checkpoint_every": 1},
    } | changes


def train(folder: Path, config: dict[str, Any]) -> Path:
    Experiment(load_config(config), folder).run()
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    (folder / "preprocessor_config.json").write_text('{"size": 28}')
    return save_model(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    """Two agents with LoRA on one base, and a critic there too."""
    return train(tmp_path_factory.mktemp("runs") / "lora", settings(model))


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory, run: Path) -> Path:
    to = tmp_path_factory.mktemp("merged")
    export_run(run, to)
    return to


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory, run: Path) -> Path:
    to = tmp_path_factory.mktemp("adapters")
    export_run(run, to, adapter=True)
    return to


@pytest.fixture(scope="module")
def trees(run: Path) -> list[Tree[Any]]:
    return greedy(run)


def greedy(run: Path, step: int | None = None) -> list[Tree[Any]]:
    """Episodes on the held-out items as the trainer plays them."""
    parts = load_team(load_config(run / "config.yaml", {"evaluation.greedy": True}))
    parts.load(RunFolder(run).checkpoints.choose(step or "last").path)
    return evaluate_team(
        parts.run.task,
        parts.players,
        parts.run.config.evaluation,
        seed=0,
        credit=parts.run.parts.credit,
        cast=parts.run.cast,
        processes=Processes(_CPU),
    ).trees


_CPU = torch.device("cpu")


def turns(trees: list[Tree[Any]], agent: str) -> list[tuple[list[int], list[int]]]:
    """Of every turn: the ids of the history before it, and those of the action."""
    return [
        (list(tree.history(node.parent, agent).tokens), list(node.actions[agent].tokens))
        for tree in trees
        for node in tree.nodes[1:]
        if node.parent is not None
    ]


def talk(tree: Tree[Any], agent: str) -> list[list[dict[str, str]]]:
    """The messages before every turn, as a client that knows text alone sends them."""
    said: list[dict[str, str]] = []
    answers = []
    for node in tree.nodes:
        if agent in node.actions:
            said = [*said, {"role": "assistant", "content": node.actions[agent].text}]
        if agent in node.observations:
            said = [*said, {"role": "user", "content": node.observations[agent].text}]
            answers.append(said)
    return answers


def speak(model: Any, ids: list[int]) -> list[int]:
    """What plain transformers generates greedily, with the folder's own settings."""
    inputs = torch.tensor([ids])
    told = model.generate(inputs, do_sample=False, top_k=None, top_p=None, temperature=None)
    return told[0, len(ids) :].tolist()


ALONE = """
import json, sys
sys.modules["colearn"] = None
from transformers import AutoModelForCausalLM, AutoTokenizer
said = {}
for folder, asked in json.load(sys.stdin).items():
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    said[folder] = []
    for messages in asked:
        inputs = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )
        ids = model.generate(**inputs, do_sample=False, top_k=None, top_p=None, temperature=None)
        start = inputs["input_ids"].shape[1]
        said[folder].append([ids[0, :start].tolist(), ids[0, start:].tolist()])
print(json.dumps(said))
"""
"""Each folder's tokens before and of every answer, with nothing of colearn."""


@pytest.mark.slow
def test_the_quickstart_s_agents_say_the_same_in_plain_transformers(tmp_path: Path) -> None:
    """Without colearn, from text alone, on every held-out letter and over both turns."""
    config = load_config(
        "quickstart",
        {
            "models.*.path": "embedded-tiny",
            "critic.path": "embedded-tiny",
            "train.environment_steps": 32,
            "evaluation.repeats": 1,
        },
    )
    run = train(tmp_path / "run", config.model_dump(mode="json"))
    folders = export_run(run, tmp_path / "out")
    trees = greedy(run)
    asked = {
        str(folder): [messages for tree in trees for messages in talk(tree, agent)]
        for agent, folder in folders.items()
    }
    alone = subprocess.run(
        [sys.executable, "-c", ALONE],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(alone.stdout)
    for agent, folder in folders.items():
        assert len(told[str(folder)]) == 12
        assert [tuple(pair) for pair in told[str(folder)]] == turns(trees, agent)


def test_a_merged_adapter_says_what_the_trainer_said(trees: list[Tree[Any]], merged: Path) -> None:
    for agent in ROLES:
        model = AutoModelForCausalLM.from_pretrained(merged / agent)
        for ids, action in turns(trees, agent):
            assert speak(model, ids) == action


def test_the_role_prompt_opens_the_conversation(trees: list[Tree[Any]], merged: Path) -> None:
    for agent in ROLES:
        tokenizer = AutoTokenizer.from_pretrained(merged / agent)
        (first, _), *_ = turns(trees, agent)
        messages = talk(trees[0], agent)[0]
        assert tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"] == (
            first
        )


def test_training_moved_the_weights_that_are_exported(model: str, merged: Path) -> None:
    before = load_file(Path(model) / "model.safetensors")
    ada, ben = (load_file(merged / agent / "model.safetensors") for agent in ROLES)
    name = "model.layers.0.self_attn.q_proj.weight"
    assert before.keys() == ada.keys() == ben.keys()
    assert not torch.equal(ada[name], before[name]) and not torch.equal(ada[name], ben[name])


def test_adapters_on_a_tied_models_embeddings_and_head_are_trained_and_exported(
    tmp_path: Path,
) -> None:
    """Two agents on one base, each with other layers; embeddings and head are one weight there."""
    tied = save_model(tmp_path / "tied", tied=True)
    targets = {"ada": ["embed_tokens", "lm_head"], "ben": "(.*v_proj|lm_head)"}
    models = {
        agent: {"path": tied, "learning_rate": 3e-2, "lora": {**LORA, "targets": chosen}}
        for agent, chosen in targets.items()
    }
    run = train(tmp_path / "run", settings(tied, models=models))
    trees = greedy(run)
    export_run(run, tmp_path / "merged")
    export_run(run, tmp_path / "adapters", adapter=True)
    for agent in ROLES:
        folder = tmp_path / "adapters" / agent
        weights = load_file(folder / "adapter_model.safetensors")
        assert all(tensor.any() for tensor in weights.values())
        plain = AutoModelForCausalLM.from_pretrained(tied)
        by_peft = PeftModel.from_pretrained(plain, folder).eval()
        alone = AutoModelForCausalLM.from_pretrained(tmp_path / "merged" / agent)
        for ids, action in turns(trees, agent):
            inputs = torch.tensor([ids])
            torch.testing.assert_close(
                alone(inputs).logits, by_peft(inputs).logits, rtol=0, atol=3e-5
            )
            assert speak(alone, ids) == action


def test_a_critics_adapter_on_the_head_is_one_line(model: str, tmp_path: Path) -> None:
    critic = {"path": model, "lora": {**LORA, "targets": ["v_proj", "lm_head"]}}
    with pytest.raises(ConfigError, match=r"^critic\.lora\.targets: a critic does not"):
        train(tmp_path / "run", settings(model, critic=critic))


def test_an_earlier_checkpoint_is_its_own_agent(run: Path, tmp_path: Path) -> None:
    folders = export_run(run, tmp_path, step=1)
    model = AutoModelForCausalLM.from_pretrained(folders["ada"])
    for ids, action in turns(greedy(run, step=1), "ada"):
        assert speak(model, ids) == action
    assert "| checkpoint | iteration 1 |" in (folders["ada"] / "README.md").read_text()


def test_weights_are_rounded_to_another_type_on_demand(run: Path, merged: Path, tmp_path: Path):
    folders = export_run(run, tmp_path, dtype="bfloat16")
    exact = load_file(merged / "ada" / "model.safetensors")
    rounded = load_file(folders["ada"] / "model.safetensors")
    assert all(torch.equal(rounded[name], exact[name].bfloat16()) for name in exact)
    assert read_manifest(folders["ada"]).dtype == "bfloat16"
    assert AutoModelForCausalLM.from_pretrained(folders["ada"]).dtype == torch.bfloat16


def test_a_team_that_learned_nothing_is_its_base(tmp_path: Path, model: str) -> None:
    """Ada has an adapter, Ben no trained model at all."""
    learner = {"path": model, "lora": LORA, "learning_rate": 1e-2}
    models = {"ada": learner, "ben": {"path": model, "trained": False}}
    config = settings(model, algorithm={"name": "untrained"}, models=models)
    folders = export_run(train(tmp_path / "run", config), tmp_path / "out")
    before = load_file(Path(model) / "model.safetensors")
    for folder in folders.values():
        after = load_file(folder / "model.safetensors")
        assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("kind", ["merged", "adapters"])
def test_a_folder_holds_these_files_and_no_others(
    kind: str, request: pytest.FixtureRequest
) -> None:
    weights = {
        "merged": {"config.json", "model.safetensors"},
        "adapters": {"adapter_config.json", "adapter_model.safetensors"},
    }[kind]
    both = {"generation_config.json", "tokenizer.json", "tokenizer_config.json", "README.md"}
    both |= {"chat_template.jinja", "agent.json", "SHA256SUMS", "preprocessor_config.json"}
    to = request.getfixturevalue(kind)
    assert sorted(path.name for path in to.iterdir()) == ["ada", "ben"]
    for agent in ROLES:
        assert {path.name for path in (to / agent).iterdir()} == weights | both
        verify(to / agent)


@pytest.mark.parametrize("kind", ["merged", "adapters"])
def test_no_folder_holds_another_agent_s_text_or_the_critic(
    kind: str, request: pytest.FixtureRequest
) -> None:
    to = request.getfixturevalue(kind)
    for agent, other in (("ada", "ben"), ("ben", "ada")):
        for path in (to / agent).iterdir():
            content = path.read_bytes().lower()
            assert f"you are {other}".encode() not in content, path
            assert b"critic" not in content and b"exp_avg" not in content, path


def test_the_same_run_gives_the_same_files(run: Path, adapters: Path, tmp_path: Path) -> None:
    again = export_run(run, tmp_path, adapter=True)
    for agent in ROLES:
        for path in (adapters / agent).iterdir():
            assert path.read_bytes() == (again[agent] / path.name).read_bytes(), path


def test_the_manifest_holds_the_run_s_settings(merged: Path, adapters: Path, model: str) -> None:
    manifest = read_manifest(merged / "ada")
    assert (manifest.agent, manifest.task, manifest.algorithm) == ("ada", "notes", "collm_cc")
    assert manifest.task_settings == {"horizon": 2, "items": 3}
    assert manifest.system == ROLES["ada"] and manifest.sampling.temperature == 0.7
    assert manifest.dtype == "float32" and manifest.weights == "merged" and manifest.base is None
    assert read_manifest(adapters / "ada").base == str(Path(model).resolve())


def test_the_card_tells_the_run(run: Path, merged: Path) -> None:
    _, header, text = (merged / "ada" / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(header)["library_name"] == "transformers"
    assert yaml.safe_load(header)["pipeline_tag"] == "text-generation"
    last = json.loads((run / "run.json").read_text())["last"]["return"]
    for told in (
        "| task | `notes` (horizon: `2`, items: `3`) |",
        "| algorithm | `collm_cc` |",
        "trained together with `ben`",
        "| trained | LoRA, rank 4, alpha 32 |",
        "| budget | 8 of 8 environment steps (joint actions), 2 updates |",
        "| seed | 0 |",
        f"| return | {_first(run):.3g} | {last:.3g} |",
        "One run, so there is no interval.",
        "vllm serve . \\\n    --dtype float32",
        "colearn serve .",
    ):
        assert told in text, told


def _first(run: Path) -> float:
    first_return: float = json.loads((run / "run.json").read_text())["first"]["return"]
    return first_return


def test_the_card_of_an_adapter_names_its_base(adapters: Path, model: str) -> None:
    _, header, text = (adapters / "ada" / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(header)["library_name"] == "peft"
    assert f'from_pretrained("{Path(model).resolve()}", dtype="float32")' in text
    assert "--enable-lora --max-lora-rank 8" in text


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def export(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `colearn export ...` in this process; its exit code and what it wrote on stderr."""

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["colearn", "export", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), capsys.readouterr().err

    return run


def _comparison(run: Path, folder: Path) -> Path:
    for name in ("magrpo-s0", "collm_cc-s0"):
        (folder / "runs" / name).mkdir(parents=True)
        (folder / "runs" / name / "run.json").write_text("{}")
    (folder / "compare.json").write_text("{}")
    return folder


def _unfinished(run: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("config.yaml", "run.json"):
        (folder / name).write_text((run / name).read_text())
    return folder


def _damaged(run: Path, folder: Path) -> Path:
    _unfinished(run, folder)
    (folder / "metrics.jsonl").write_text((run / "metrics.jsonl").read_text())
    actor = folder / "checkpoints" / "step-2" / "actor-ada"
    actor.mkdir(parents=True)
    progress = (run / "checkpoints" / "step-2" / "progress.json").read_text()
    (actor.parent / "progress.json").write_text(progress)
    (actor / "weights.safetensors").write_bytes(b"\x00" * 100)
    write_checksums(actor.parent)
    return folder


@pytest.mark.parametrize(
    ("make", "options", "line"),
    [
        (lambda _, folder: folder, (), "no run here (no config.yaml); give a run's folder"),
        (_comparison, (), "/runs: collm_cc-s0, magrpo-s0"),
        (_unfinished, (), "no checkpoint yet; let the run reach one"),
        (_damaged, (), "weights.safetensors: cannot be read"),
        (lambda run, _: run, ("--step", "7"), "the run keeps no such checkpoint; it has: 0, 1, 2"),
        (lambda run, _: run, ("--adapter", "--dtype", "float16"), "--dtype: an adapter stays in"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_left(
    make: Callable[[Path, Path], Path],
    options: tuple[str, ...],
    line: str,
    run: Path,
    export: Command,
    tmp_path: Path,
) -> None:
    to = tmp_path / "out"
    code, said = export(str(make(run, tmp_path / "run")), "--to", str(to), *options)
    assert code == 2 and said.startswith("error: ") and said.count("\n") == 1
    assert line in said
    assert not to.exists()


def test_an_agent_that_exists_is_overwritten_on_demand_only(
    export: Command, run: Path, tmp_path: Path
) -> None:
    assert export(str(run), "--to", str(tmp_path))[0] == 0
    code, said = export(str(run), "--to", str(tmp_path))
    assert code == 2 and "ada exists; name another folder or give --overwrite" in said
    assert export(str(run), "--to", str(tmp_path), "--overwrite", "--adapter")[0] == 0
    assert not (tmp_path / "ada" / "model.safetensors").exists()
    verify(tmp_path / "ada")


def test_an_adapter_of_a_model_trained_in_full_is_an_error(model: str) -> None:
    config = load_config(settings(model, models={"*": {"path": model}}))
    trained: Any = SimpleNamespace(run=resolve(config, agents=tuple(ROLES)))
    with pytest.raises(ConfigError, match=r"models\.ada was trained in full and has no adapter"):
        check_adapter(trained)


def test_a_mixed_team_is_exported_as_adapters_and_whole_models_without_its_heads(
    export: Command, model: str, tmp_path: Path
) -> None:
    models = {"ada": {"path": model, "lora": {"rank": 2}}, "ben": {"path": model}}
    changes = {"algorithm": {"name": "collm_dc"}, "critic": {"share": "actor"}}
    run = train(tmp_path / "run", settings(model, models=models, **changes))
    code, _ = export(str(run), "--to", str(tmp_path / "out"), "--adapter")
    assert code == 0
    folders = {agent: tmp_path / "out" / agent for agent in ROLES}
    weights = {agent: read_manifest(folder).weights for agent, folder in folders.items()}
    assert weights == {"ada": "adapter", "ben": "merged"}
    adapter = load_file(folders["ada"] / "adapter_model.safetensors")
    assert all("lora_" in name for name in adapter)
    whole = load_file(folders["ben"] / "model.safetensors")
    assert whole.keys() == load_file(Path(model) / "model.safetensors").keys()
    loaded = AutoModelForCausalLM.from_pretrained(folders["ben"])
    for ids, action in turns(greedy(run), "ben"):
        assert speak(loaded, ids) == action
    for folder in folders.values():
        verify(folder)


@pytest.mark.vllm
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs the vllm extra")
@pytest.mark.parametrize("kind", ["merged", "adapter"])
def test_vllm_says_what_the_trainer_said(kind: str, tmp_path: Path) -> None:
    """Over both turns from ids; the first turn from messages, too."""
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    base = tmp_path / "base"
    qwen().save_pretrained(base)
    byte_tokenizer().save_pretrained(base)
    run = train(tmp_path / "run", settings(str(base)))
    folders = export_run(run, tmp_path / "out", adapter=kind == "adapter")
    trees = greedy(run)
    for number, (agent, folder) in enumerate(folders.items(), start=1):
        lora: dict[str, Any] = {}
        if kind == "adapter":
            lora = {"lora_request": LoRARequest(agent, number, str(folder))}
        engine = LLM(
            model=str(read_manifest(folder).base or folder),
            tokenizer=str(folder),
            dtype="float32",
            max_model_len=512,
            kv_cache_memory_bytes=2**26,
            enforce_eager=True,
            enable_lora=bool(lora),
            block_size=32,
        )
        params = SamplingParams(temperature=0.0, max_tokens=6)
        asked = turns(trees, agent)
        prompts = [{"prompt_token_ids": ids} for ids, _ in asked]
        told = engine.generate(prompts, params, use_tqdm=False, **lora)
        assert [list(output.outputs[0].token_ids) for output in told] == [a for _, a in asked]
        (output,) = engine.chat([talk(trees[0], agent)[0]], params, use_tqdm=False, **lora)
        assert list(output.prompt_token_ids) == asked[0][0]
        assert list(output.outputs[0].token_ids) == asked[0][1]
        engine.llm_engine.engine_core.shutdown()
