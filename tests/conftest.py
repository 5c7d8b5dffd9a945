"""Makes the shared parts of the tests (`tiny`) importable, and keeps torch to one thread."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
