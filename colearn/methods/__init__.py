"""The parts that an algorithm chooses: advantage, critic, credit and loss, and saved critics."""
