"""Proposals: the largest model first, shared bases together, then settings for less memory."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest

from colearn.config import Config, load_config
from colearn.estimate import Estimate, estimate
from colearn.estimate.machine import Machine, read_machine
from colearn.estimate.proposal import Proposal
from colearn.estimate.propose import LEAST_BUDGET, propose
from colearn.estimate.table import idle_line, proposal_text

LONG = {"task.horizon": 4, "agents.*.sampling.max_tokens": 60}
"""Settings under which activations take most of the memory."""


def config(**changed: Any) -> Config:
    return load_config(
        {
            "task": {"name": "str_build", "horizon": 1},
            "algorithm": {"name": "collm_cc"},
            "models": {"*": {"path": "embedded-tiny"}},
            "critic": {"path": "embedded-tiny"},
            "evaluation": {"episodes": 1},
        },
        changed,
    )


def proposed(machine: Machine | None, processes: int = 1, **changed: Any) -> Proposal | None:
    return propose(estimate(config(**changed), machine=machine, processes=processes))


def placement(proposal: Proposal | None) -> dict[str, str]:
    assert proposal is not None
    return dict(proposal.changes["placement"])


def test_models_with_weights_of_their_own_are_spread_over_the_devices() -> None:
    proposal = proposed(read_machine("3x80GB"))
    assert proposal is not None and proposal.fits and [*proposal.changes] == ["placement"]
    assert sorted(placement(proposal).values()) == ["cuda:0", "cuda:1", "cuda:2"]
    devices = {str(network.key): network.device for network in proposal.estimate.networks}
    assert len(set(devices.values())) == 3
    assert proposal_text(proposal).plain.endswith("it fits")


def test_more_models_than_devices_share_them_by_size() -> None:
    where = placement(proposed(read_machine("2x80GB")))
    # both actors are alike; the critic, whose vocabulary holds the tags of a stream, is larger
    assert next(iter(where.items())) == ("critic", "cuda:0")
    assert [*where.values()][1:] == ["cuda:1", "cuda:1"]


def test_each_of_several_value_models_is_placed() -> None:
    where = placement(proposed(read_machine("4x80GB"), **{"algorithm.name": "collm_dc"}))
    assert sorted(where) == ["builder_1", "builder_2", "critic-builder_1", "critic-builder_2"]
    assert sorted(where.values()) == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]


def test_adapters_of_one_base_stay_together() -> None:
    lora = {"rank": 2, "alpha": 4}
    proposal = proposed(read_machine("2x80GB"), **{"models.*.lora": lora, "critic.lora": lora})
    assert set(placement(proposal).values()) == {"cuda:0"}


def test_what_does_not_fit_is_said_with_the_remedy() -> None:
    proposal = proposed(Machine(count=4, memory=1000))
    assert proposal is not None and not proposal.fits
    text = proposal_text(proposal).plain
    assert f"does not fit on {', '.join(proposal.estimate.too_small)}: use LoRA" in text


@pytest.mark.parametrize(
    ("machine", "changed"),
    [
        (None, {}),
        (read_machine("80GB"), {}),
        (read_machine("2x80GB"), {"models.*.device": "cuda:1"}),
    ],
    ids=["this machine", "one device", "devices are named"],
)
def test_there_is_nothing_to_propose(machine: Machine | None, changed: dict[str, Any]) -> None:
    assert proposed(machine, **changed) is None


def test_processes_of_a_launcher_have_a_device_each() -> None:
    assert proposed(read_machine("2x80GB"), processes=2) is None


PLAYS = {
    "train.episodes": 64,
    "evaluation.episodes": 48,
    "agents.*.sampling.max_tokens": 250,
    "train.token_budget": LEAST_BUDGET,
}
"""Settings under which caches take most of the memory."""
ROWS = {"train.episodes": 8, "agents.*.sampling.max_tokens": 250, "train.token_budget": 1_000_000}
"""Settings under which activations do."""


def test_fewer_episodes_at_once_are_proposed_where_caches_do_not_fit() -> None:
    whole = estimate(config(**PLAYS), machine=Machine(1, 10**12))
    assert whole.phases is not None and whole.together == {"evaluation": 48, "rollout": 64}
    resident = whole.resident["cuda:0"]
    half = (whole.phases["cuda:0"]["rollout"] - resident) // 2
    # a tenth stays free
    machine = Machine(1, int((resident + half) / 0.9) + 1)
    proposal = propose(estimate(config(**PLAYS), machine=machine))
    assert proposal is not None and proposal.fits
    assert [*proposal.changes] == ["evaluation.at_once", "train.at_once"]
    # bytes grow with the episodes, so half of the bytes are half of the episodes, or one less
    assert proposal.changes["train.at_once"] in (31, 32)
    assert proposal.estimate.together["rollout"] == proposal.changes["train.at_once"]
    assert f"  --set train.at_once={proposal.changes['train.at_once']}\n" in (
        proposal_text(proposal).plain
    )


def test_a_smaller_token_budget_comes_before_checkpointing() -> None:
    peak = estimate(config(**ROWS), machine=Machine(1, 10**12)).peak("cuda:0")
    proposal = propose(estimate(config(**ROWS), machine=Machine(1, peak - 1)))
    assert proposal is not None and proposal.fits
    # eight rows of 715 tokens: 1,000,000 is halved until five rows are a micro-batch
    assert proposal.changes == {"train.token_budget": 3906}


def test_what_no_smaller_budget_makes_fit_is_checkpointed() -> None:
    least = LONG | {"train.token_budget": LEAST_BUDGET}
    peak = estimate(config(**least), machine=Machine(1, 10**12)).peak("cuda:0")
    proposal = propose(estimate(config(**least), machine=Machine(1, peak - 1)))
    assert proposal is not None and proposal.fits
    assert proposal.changes == {
        "models.*.checkpointing": True,
        "critic.checkpointing": True,
    }


@pytest.mark.parametrize(
    ("memory", "changes"),
    [
        # 160 stay, and 3 of 64 episodes of 12 bytes find room in nine tenths
        (220, {"train.at_once": 3}),
        (176, {"train.at_once": 1}),  # 160 are more than nine tenths: all is used
        (104, {"run.learner.config": "zero2", "train.at_once": 3}),  # 40 + 120 / 8 stay
        (52, {"run.learner.config": "zero3", "train.at_once": 1}),  # 40 stay
        (51, None),
    ],
)
def test_zero_divides_what_placement_cannot(
    memory: int, changes: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One network of 40 bytes of weights and 120 of state, which stage 2 divides among eight
    processes; with stage 3 none of it is on the device."""
    whole = estimate(config(), machine=Machine(8, 10**12))
    state = {None: 120, "zero2": 15, "zero3": 0, "zero3_offload": 0}

    def counted(config: Config, *, processes: int = 1, **_: Any) -> Estimate:
        resident = 40 + state[config.run.learner.settings.get("config")]
        episodes = min(64 // processes, config.train.at_once or 64)
        return replace(
            whole,
            given=config,
            machine=Machine(8, memory),
            processes=processes,
            phases={"cuda:0": {"rollout": resident + 12 * episodes, "optimizer step": resident}},
            resident={"cuda:0": resident},
            together={"evaluation": 1, "rollout": episodes},
        )

    monkeypatch.setattr("colearn.estimate.proposal.estimate", counted)
    proposal = propose(counted(config()))
    assert proposal is not None and proposal.fits == (changes is not None)
    if changes is None:
        return
    found = dict(proposal.changes)
    found.pop("placement", None)
    learner = found.pop("run.learner", {})
    found |= {f"run.learner.{key}": value for key, value in learner.items() if key != "name"}
    assert found == changes
    assert proposal.estimate.processes == (8 if learner else 1)


def test_the_proposed_lines_are_the_proposed_run() -> None:
    proposal = proposed(read_machine("2x80GB"), **LONG)
    assert proposal is not None
    lines = [line.split(" ", 3)[3] for line in proposal_text(proposal).plain.splitlines()[1:2]]
    pasted = load_config(config(**LONG).model_dump(mode="json"), [shlex.split(lines[0])[0]])
    again = estimate(pasted, machine=read_machine("2x80GB"))
    assert again.phases == proposal.estimate.phases


def test_the_layout_that_takes_the_least_time_is_proposed() -> None:
    proposal = proposed(read_machine("4xH100-80GB"))
    assert proposal is not None and proposal.fits and proposal.others
    assert all(proposal.iteration <= one.iteration for one in proposal.others if one.fits)
    text = proposal_text(proposal).plain
    assert "estimate, not measured: an iteration takes" in text
    assert all(f"not proposed: {one.layout}, " in text for one in proposal.others if one.fits)


def test_idle_devices_are_explained_by_a_layout_that_uses_more_of_them() -> None:
    machine = read_machine("8xH100-80GB")
    estimated = estimate(config(), machine=machine)
    on_one = Proposal({}, estimated)
    equal = replace(on_one.changed({}, processes=8), layout="8 equal processes")
    told = idle_line(replace(on_one, others=(equal,)), machine)
    assert told is not None
    assert told.startswith("7 of 8 devices are idle: 8 equal processes take ")
    assert f"update {equal.estimate.seconds.update:.3g} s" in told
    alone = idle_line(on_one, machine)
    assert alone == "7 of 8 devices are idle: no layout that uses more of them fits"
    assert idle_line(equal, machine) is None
