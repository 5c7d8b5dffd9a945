"""A task's episodes with every agent behind a server of its own."""
