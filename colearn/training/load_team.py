"""Loads the team of a config."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from colearn.config import Config, resolve
from colearn.methods.values.given import GivenCritics, with_given_critic
from colearn.models.folders import base_folders, with_folders
from colearn.models.load import Tokenizers, resolve_device
from colearn.models.sources import sources_of
from colearn.text.masking import check_unmasked

from .evaluation.checked import check_evaluation
from .players import with_other_players
from .team import Team


def load_team(config: Config) -> Team:
    """Load the models of a run and build its players.

    Errors: ConfigError, one line that names the key and the remedy. A ConfigError is also raised if
    the config was read from a run folder in which a setting's value is masked.
    """
    check_unmasked(config.model_dump(mode="json"))
    run = resolve(with_given_critic(config), auto=resolve_device("auto").type)
    check_evaluation(run)
    GivenCritics.of(run)  # reports a critic that does not fit before models are loaded
    folders = base_folders(run, run.networks)
    with ExitStack() as undo:
        team: Team = run.host.build(with_folders(run, folders), Tokenizers())
        undo.callback(team.close)
        team = replace(
            team,
            run=run,
            folders=folders,
            players=with_other_players(run, team.players),
            sources=sources_of(run, folders),
        )
        undo.pop_all()
    return team
