"""Checks that a copy is complete, so that no contender gains time by leaving something out."""
import os
import stat
import subprocess
from collections import Counter


def tree(root):
    """Path → status of everything below root, without root itself."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = os.lstat(path)
    return found


def _differs(path, there, here):
    if here is None:
        return f"{path} is missing"
    if stat.S_IFMT(there.st_mode) != stat.S_IFMT(here.st_mode):
        return f"{path} is another kind of file"
    if stat.S_ISREG(there.st_mode) and there.st_size != here.st_size:
        return f"{path} has {here.st_size} bytes, not {there.st_size}"
    return None


def compare(source, copy):
    """(the reason why it is no copy, or None; minor losses: "200 modes", "1.0 GiB of holes")."""
    if not os.path.isdir(copy):
        return f"there is no {copy}", []
    ours, theirs = tree(source), tree(copy)
    for path, there in ours.items():
        problem = _differs(path, there, theirs.get(path))
        if problem:
            return problem, []
    for path in theirs.keys() - ours.keys():
        return f"{path} is not in the source", []
    done = subprocess.run(["diff", "-rq", "--no-dereference", source, copy], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return (done.stdout + done.stderr).strip().splitlines()[0], []
    return None, _losses(ours, theirs)


def _losses(ours, theirs):
    lost = Counter()
    for path, there in ours.items():
        here = theirs[path]
        if stat.S_ISLNK(there.st_mode):
            continue
        lost["modes"] += stat.S_IMODE(there.st_mode) != stat.S_IMODE(here.st_mode)
        lost["owners"] += (there.st_uid, there.st_gid) != (here.st_uid, here.st_gid)
        if stat.S_ISREG(there.st_mode):
            lost["times"] += there.st_mtime_ns != here.st_mtime_ns
            lost["hard links"] += there.st_nlink != here.st_nlink
            lost["files with holes"] += here.st_blocks * 512 > there.st_blocks * 512 + (1 << 20)
    return [f"{count:,} {what}" for what, count in lost.items() if count]
