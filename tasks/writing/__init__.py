"""The writing tasks: `tldr` and `arxiv`."""
