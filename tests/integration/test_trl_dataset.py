"""The data set and the reward function of a TRL script, in TRL and here."""

from __future__ import annotations

import json

import numpy as np
import pytest

from colearn.contract import SampledAction
from colearn.contract.types import Action
from colearn.models.embedded import embedded_model
from colearn.tasks.dataset import Dataset
from tests.helpers.reward_functions import CALLS, recorded

trl = pytest.importorskip("trl")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One step of GRPOTrainer: the task on the same data, and what TRL called the function with."""
    from datasets import load_dataset
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("trl")
    data = folder / "train.jsonl"
    rows = [
        {"prompt": [{"role": "user", "content": f"paint {k}"}], "colour": colour}
        for k, colour in enumerate(("red", "blue") * 5)
    ]
    data.write_text("\n".join(map(json.dumps, rows)))
    task = Dataset(str(data), "tests.helpers.reward_functions:recorded", words=("red", "blue"))
    model = embedded_model(task, "embedded-tiny", "models.*.path")
    trainer = trl.GRPOTrainer(
        model=str(model),
        reward_funcs=recorded,
        processing_class=AutoTokenizer.from_pretrained(model),
        train_dataset=load_dataset("json", data_files=str(data), split="train"),
        args=trl.GRPOConfig(
            output_dir=str(folder / "out"),
            per_device_train_batch_size=16,
            num_generations=4,
            max_completion_length=4,
            max_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
        ),
    )
    CALLS.clear()
    trainer.train()
    return task, CALLS[0]


def replay(task, call, number):
    """The outcome here of a completion that TRL sampled."""
    [item] = [i for i in task.items("train") if i.prompt.given == call["prompts"][number]]
    text = call["completions"][number][0]["content"]
    said = SampledAction(Action(text, tuple(call["completion_ids"][number])))
    rng = np.random.default_rng(0)
    return task.step(task.reset(item, rng), {"agent": said}, rng)


def test_trls_completions_earn_here_what_they_earned_there(trained):
    task, call = trained
    known = {json.dumps(item.prompt.given) for item in task.items("train")}
    numbers = [k for k, p in enumerate(call["prompts"]) if json.dumps(p) in known]
    assert len(numbers) >= 8
    theirs = recorded(call["prompts"], call["completions"], call["colour"])
    assert [replay(task, call, k).reward for k in numbers] == [theirs[k] for k in numbers]


def test_a_function_is_called_here_with_all_that_trl_calls_it_with(trained):
    task, theirs = trained
    known = [item.prompt.given for item in task.items("train")]
    number = next(k for k, prompt in enumerate(theirs["prompts"]) if prompt in known)
    CALLS.clear()
    replay(task, theirs, number)
    assert set(theirs) - {"trainer_state"} <= set(CALLS[0])
