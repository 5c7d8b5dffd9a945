"""Selects the lines of a run's files that a resumed run keeps."""

from __future__ import annotations

from pathlib import Path

from colearn.errors import CheckpointError
from colearn.text.notes import note

from .fields import CriticLine, Episode, Line, Progress, RecordedTree
from .files import read_texts
from .folder import CONFIG, CRITIC, EPISODES, METRICS, RUN, TREES, RunFolder


def check_no_remains(folder: RunFolder) -> None:
    """Errors: CheckpointError if the folder has a run's results or state but no config. A new run
    would overwrite these files."""
    remains = [name for name in (METRICS, EPISODES, TREES, CRITIC) if (folder.path / name).exists()]
    remains += ["checkpoints"] if folder.checkpoints.all() else []
    if remains:
        raise CheckpointError(
            f"--out {folder.path}: holds {', '.join(remains)} of a run and no {CONFIG}; put it "
            "back, or name another folder"
        )


def kept_lines(
    folder: RunFolder, progress: Progress | None, *, transcripts: bool
) -> dict[Path, list[str]]:
    """Returns, for each file, the lines up to the last update and the last evaluation in
    `progress`.

    progress: None if the run restarts, so that no lines are kept. Missing lines are reported on
    stderr; missing lines of episodes only if the run writes `transcripts`. Errors: CheckpointError
    for a line that cannot be read, and if the run's metrics or all of its checkpoints are missing.
    """
    metrics, episodes = folder.path / METRICS, folder.path / EPISODES
    trees, critic = folder.path / TREES, folder.path / CRITIC
    if progress is None:
        _check_started(folder)
        files = [path for path in (metrics, episodes, trees, critic) if path.exists()]
        if files:
            note(
                f"{folder.path}: no checkpoint was reached; the run starts again without its lines"
            )
        return {path: [] for path in files}
    iteration = progress.iteration
    evaluated = -1 if progress.evaluated is None else progress.evaluated
    lines = list(read_texts(Line, metrics))
    recorded_episodes = list(read_texts(Episode, episodes))
    if not metrics.exists() and (iteration or evaluated >= 0):
        raise CheckpointError(
            f"{metrics}: missing, and the run's figures are in it; put it back, or make an empty "
            "file to go on without them"
        )
    updates = {line.iteration for _, line in lines if line.kind == "update"}
    lost = [number for number in range(1, iteration + 1) if number not in updates]
    if lost:
        note(
            f"{metrics} lacks {len(lost)} of {iteration} updates, first that of iteration {lost[0]}"
        )
    if evaluated not in {-1, *(line.iteration for _, line in lines if line.kind == "evaluation")}:
        note(f"{metrics} lacks the evaluation of iteration {evaluated}")
    if transcripts and evaluated >= 0 and not episodes.exists():
        note(f"{episodes} is missing; the transcripts in it are lost")
    kept_texts = {
        metrics: [
            text
            for text, line in lines
            if line.iteration <= (iteration if line.kind == "update" else evaluated)
        ],
        episodes: [text for text, episode in recorded_episodes if episode.iteration <= evaluated],
        critic: [
            text for text, line in read_texts(CriticLine, critic) if line.iteration <= iteration
        ],
        trees: [
            text for text, tree in read_texts(RecordedTree, trees) if tree.iteration <= iteration
        ],
    }
    return {path: texts for path, texts in kept_texts.items() if path.exists()}


def _check_started(folder: RunFolder) -> None:
    """Errors: CheckpointError if the run's checkpoints have disappeared."""
    if (folder.path / RUN).exists() and folder.record().status != "running":
        raise CheckpointError(
            f"{folder.checkpoints.folder}: no checkpoint is left of a run that is "
            f"{folder.record().status}; put one back, or name another folder"
        )
