"""Code and files from outside: agents of existing programs, workflows, sandboxes, first opening."""
