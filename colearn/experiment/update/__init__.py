"""The update of an iteration: training rows, critics, objectives and the updater."""
