"""The gateway task: trains the agents of a program written with any framework. The program's model
requests are the turns of an episode."""
