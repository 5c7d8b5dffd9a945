"""Runs one shell command inside the sandbox, between the files before and after it.

Standard input is a JSON object with `files` and `tests` (archives), `folder`, `variables`,
`command` and `seconds`. The last line of standard output is a JSON object with the command's
`text`, the `files` after it and the verifier's `rewards` by file name.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterable
from typing import Any

LONGEST = 4000
"""Characters of a command's output that are kept, half from its start and half from its end."""


def everything() -> list[str]:
    """All paths of the writable root, without the system's folders, which are other mounts."""
    device = os.lstat("/").st_dev
    paths = []
    for folder, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if is_on(device, folder, name)]
        paths += [os.path.join(folder, n) for n in folders + names if is_on(device, folder, n)]
    return sorted(paths)


def is_on(device: int, folder: str, name: str) -> bool:
    try:
        return os.lstat(os.path.join(folder, name)).st_dev == device
    except OSError:  # a process that the command left behind has removed it
        return False


def unpack(archive: str, folder: str) -> None:
    if archive:
        data = zlib.decompress(base64.b64decode(archive))
        with tarfile.open(fileobj=io.BytesIO(data)) as files:
            files.extractall(folder, filter=without_time)


def without_time(entry: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """The entry without its time, which the sandbox refuses to set: modes are set after times."""
    return tarfile.tar_filter(entry, folder).replace(mtime=None)  # type: ignore[arg-type]


def pack(named: Iterable[tuple[str, str]]) -> str:
    """An archive of files and folders, each with its name in the archive."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as files:
        for path, name in named:
            files.add(path, name, recursive=False, filter=without_owner)
    return base64.b64encode(zlib.compress(written.getvalue())).decode()


def without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """The entry without user and time, which differ between equal runs."""
    entry.uid = entry.gid = 0
    entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def run(work: dict[str, Any]) -> str:
    """The command's output, which ends with its exit status if that is not 0."""
    with open("/logs/verifier/test-stdout.txt", "w+b") as output:
        shell = subprocess.Popen(
            ["bash", "-c", work["command"]],
            cwd=work["folder"],
            env=work["variables"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = f"[exit status {shell.wait(work['seconds'])}]"
        except subprocess.TimeoutExpired:
            status = f"[stopped after {work['seconds']} seconds]"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        output.seek(0)
        text = output.read().decode("utf-8", "replace").rstrip()
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n[...]\n{text[-LONGEST // 2 :]}"
    return text if status == "[exit status 0]" else f"{text}\n{status}".lstrip()


def rewards() -> dict[str, str]:
    texts = {}
    for name in ("reward.json", "reward.txt"):
        path = f"/logs/verifier/{name}"
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                texts[name] = file.read(1 << 16)
    return texts


def main() -> None:
    work = json.load(sys.stdin)
    before = set(everything())
    unpack(work["files"], "/")
    for folder in ("/tests", "/logs/verifier", "/logs/agent", "/logs/artifacts", work["folder"]):
        os.makedirs(folder, exist_ok=True)
    unpack(work["tests"], "/tests")
    text = run(work)
    after = [path for path in everything() if path not in before]
    kept = [path for path in after if path.split("/")[1] not in ("tests", "logs")]
    files = "" if work["tests"] else pack((path, path) for path in kept)
    print()  # what was written before belongs to another line
    print(json.dumps({"text": text, "files": files, "rewards": rewards()}))


if __name__ == "__main__":
    main()
