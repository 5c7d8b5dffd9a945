"""Modules for the update of an iteration: training rows, critics, objectives and the updater."""
