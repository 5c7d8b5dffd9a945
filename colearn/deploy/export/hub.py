"""Pushes exported agents to a model hub: one repository per agent, and a collection of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from colearn.errors import ConfigError, reason_of

from .manifest import read_manifest

if TYPE_CHECKING:
    from huggingface_hub import HfApi


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedTeam:
    """Repositories of a pushed team."""

    agents: Mapping[str, str]
    """The repository of each agent."""
    collection: str
    """URL of the collection that contains these repositories."""


def push_agents(
    folders: Mapping[str, Path], namespace: str, name: str, *, private: bool = False
) -> PushedTeam:
    """Upload exported folders as NAMESPACE/NAME-AGENT, and add these repositories to a collection.
    Pushing again replaces the files.

    The hub's URL is read from HF_ENDPOINT, the token from HF_TOKEN or from `hf auth login`.

    Errors: ConfigError for an adapter whose base is a local folder, before anything is uploaded;
    ConfigError with the hub's answer if the hub refuses.
    """
    from huggingface_hub import HfApi

    for agent, folder in folders.items():
        base = read_manifest(folder).base
        if base is not None and Path(base).is_absolute():
            raise ConfigError(
                f"--push {namespace}: the adapter of '{agent}' is on a local base, {base}; leave "
                "--adapter out, or train on a base of the hub"
            )
    api = HfApi()
    at = {agent: f"{namespace}/{name}-{agent}" for agent in folders}
    with _one_line_errors(namespace):
        for agent, repository in at.items():
            _upload(api, repository, folders[agent], name, private)
        collection = api.create_collection(
            name,
            namespace=namespace,
            description=f"A team of {len(folders)} agents, trained with colearn",
            private=private,
            exists_ok=True,
        )
        for repository in at.values():
            api.add_collection_item(collection.slug, repository, "model", exists_ok=True)
    return PushedTeam(agents=at, collection=collection.url)


def push_critics(
    folders: Mapping[str, Path], namespace: str, name: str, *, private: bool = False
) -> dict[str, str]:
    """Upload each exported critic as NAMESPACE/NAME-critic-MODEL. Return a mapping from value
    models to repositories.

    Errors: ConfigError with the hub's answer if the hub refuses.
    """
    from huggingface_hub import HfApi

    at = {model: f"{namespace}/{name}-critic-{model}" for model in folders}
    api = HfApi()
    with _one_line_errors(namespace):
        for model, repository in at.items():
            _upload(api, repository, folders[model], name, private)
    return at


def _upload(api: HfApi, repository: str, folder: Path, name: str, private: bool) -> None:
    """Create a repository if it is new, and replace its files by those of a folder."""
    api.create_repo(repository, private=private, exist_ok=True)
    api.upload_folder(
        repo_id=repository,
        folder_path=folder,
        delete_patterns="*",
        commit_message=f"Export by colearn: {name}",
    )


@contextmanager
def _one_line_errors(namespace: str) -> Iterator[None]:
    """Convert an error of the hub into a ConfigError with a one-line message."""
    # the base class of the hub's errors, whichever HTTP client it uses
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

    try:
        yield
    except (HTTPError, OSError, ValueError) as error:
        raise ConfigError(
            f"--push {namespace}: {reason_of(error)}; check the namespace, HF_ENDPOINT and the "
            "token (HF_TOKEN or `hf auth login`)"
        ) from error
