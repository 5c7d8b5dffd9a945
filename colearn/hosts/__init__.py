"""Where the models of a run live. The shipped kinds of hosts, by name."""

NAMES = {
    "local": "kinds:Local",
}
