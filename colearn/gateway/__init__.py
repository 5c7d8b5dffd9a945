"""The gateway task: programs of any framework, whose model requests are the turns of an episode."""
