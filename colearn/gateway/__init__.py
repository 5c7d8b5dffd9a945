"""The gateway: a program of any framework, whose model calls are the turns of an episode."""
