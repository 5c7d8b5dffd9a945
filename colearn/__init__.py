"""colearn: decentralised training of language-model teams."""

__version__ = "0.1.0"
