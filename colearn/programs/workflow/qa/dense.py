"""Dense retrieval: dot products of a sentence encoder's mean-pooled hidden states."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colearn.errors import ConfigError, reason_of
from colearn.programs.files.cache import made_once

from .corpus import Corpus, Passage
from .retriever import KEPT_ANSWERS, Retriever

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Dense(Retriever):
    """Finds the passages whose vector (of title and text) has the largest dot product with the
    query's vector.

    A vector is the mean of the last hidden states over all tokens, as in Contriever. The vectors of
    a `Folder` are stored on disk and memory-mapped. Errors: ConfigError for a model that cannot be
    loaded.
    """

    corpus: Corpus
    path: str
    """A sentence encoder: a folder or a hub name, such as facebook/contriever."""
    longest: int = 256
    """Maximum number of tokens of a text; the rest of the text is not read."""
    batch: int = 64

    def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """Returns the k passages with the largest dot products, in decreasing order. Ties keep the
        order of the corpus."""
        return _answer(self, query, k)


class _Encoder:
    def __init__(self, retriever: Dense) -> None:
        from transformers import AutoModel

        from colearn.models.adapter_folder import loaded_revision
        from colearn.models.load import load_tokenizer

        self.tokenizer: Any = load_tokenizer(retriever.path, field="task.encoder")
        revision = loaded_revision(retriever.path, "task.encoder")
        try:
            self.model: Any = AutoModel.from_pretrained(
                retriever.path, revision=revision, use_safetensors=True, trust_remote_code=False
            ).eval()
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"task.encoder: cannot load '{retriever.path}' ({reason_of(error)}); give "
                "the folder or hub name of a sentence encoder with safetensors"
            ) from None
        self.retriever = retriever

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Vectors of the texts, shape [texts, width]."""
        import torch

        vectors = []
        for first in range(0, len(texts), self.retriever.batch):
            inputs = self.tokenizer(
                list(texts[first : first + self.retriever.batch]),
                padding=True,
                truncation=True,
                max_length=self.retriever.longest,
                return_tensors="pt",
            )
            with torch.inference_mode():
                states = self.model(
                    input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]
                ).last_hidden_state
                mask = inputs["attention_mask"][..., None].to(states.dtype)
                means = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
            vectors.append(means.float().numpy())
        return np.concatenate(vectors)


class _DenseIndex:
    def __init__(self, retriever: Dense) -> None:
        from colearn.models.digests import file_digests

        self.retriever = retriever
        self.encoder = _Encoder(retriever)
        self.passages = retriever.corpus.passages()
        digest = retriever.corpus.digest
        if digest is None:
            self.vectors = self._made()
            return
        files = file_digests(retriever.path, "task.encoder")  # another encoder may be put there
        settings = (retriever.path, files)
        key = hashlib.blake2b(json.dumps([*settings, retriever.longest]).encode(), digest_size=8)
        file = made_once(
            f"dense-{digest}-{key.hexdigest()}.npy",
            "the vectors of the passages",
            lambda aside: np.save(aside, self._made()),
        )
        self.vectors = np.load(file, mmap_mode="r")

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        query_vector = self.encoder.vectors([query])[0]
        order = np.argsort(-(self.vectors @ query_vector), kind="stable")[:k]
        return tuple(self.passages[n] for n in order)

    def _made(self) -> Vectors:
        return self.encoder.vectors(list(self._texts()))

    def _texts(self) -> Iterator[str]:
        for passage in self.passages:
            yield f"{passage.title} {passage.text}"


@lru_cache(maxsize=2)
def _index(retriever: Dense) -> _DenseIndex:
    return _DenseIndex(retriever)


@lru_cache(maxsize=KEPT_ANSWERS)
def _answer(retriever: Dense, query: str, k: int) -> tuple[Passage, ...]:
    return _index(retriever).find(query, k)
