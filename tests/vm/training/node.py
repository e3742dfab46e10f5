"""One host of a training job on two hosts, whose processes are killed repeatedly. PyTorch is loaded once.

    node.py RANK FIRST_HOST FOLDER OUTPUT < ORDERS

OUTPUT watches FOLDER and sends each host's part of a checkpoint; a checkpoint is complete once it has the file DONE, which
holds the attempt. ORDERS are lines of JSON: {"begin": ATTEMPT, "port": PORT, "spoils": true if it is to save wrong numbers}
starts the host's process, which finds the checkpoint to resume from, loads and checks it, then trains and saves. {"end": 0}
kills it. Answers are lines of JSON: "ready", "resumed" (the step), "saved" (a step, by rank 0, when both hosts have it),
"wrong" (a reason) and "ended".
"""
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

from checkpoints import RANKS, State, dist, torch

UNAVAILABLE, NONE_YET = 4, 3
PAUSE_S = 1.0


def answer(**words):
    os.write(1, (json.dumps(words) + "\n").encode())


def ask(*words):
    """The program's output; None if it finds nothing. Waits for a daemon that was killed."""
    while True:
        asked = subprocess.run(["spark-stage", *words], capture_output=True, text=True)
        if asked.returncode == 0:
            return asked.stdout
        if asked.returncode == NONE_YET:
            return None
        if asked.returncode != UNAVAILABLE:
            raise RuntimeError(f"spark-stage {' '.join(words)}: exit status {asked.returncode}: {asked.stderr}")
        time.sleep(0.5)


def find_checkpoint(output):
    """All hosts have to load the same one: that of rank 0, which may have been published a moment ago. Returns its path."""
    found = json.loads(ask("latest", output, "--json") or "null")
    chosen = [found["dataset"] if found else None]
    dist.broadcast_object_list(chosen)
    if chosen[0] is None:
        return None
    return found["path"] if found and found["dataset"] == chosen[0] else ask("stage", chosen[0]).strip()


def save(state, folder):
    path = folder / f"step-{state.step}"
    shutil.rmtree(path, ignore_errors=True)  # left by a killed attempt
    path.mkdir()
    dist.barrier()
    state.save(path)
    (path / "DONE").write_text(f"{state.attempt}\n")
    dist.barrier()


def work(rank, first_host, folder, output, order):
    dist.init_process_group("gloo", init_method=f"tcp://{first_host}:{order['port']}", rank=rank, world_size=RANKS,
                            timeout=datetime.timedelta(seconds=300))
    path = find_checkpoint(output)
    state = State(rank, order["begin"])
    if path and (reason := state.load(path)):
        answer(wrong=reason)
        return
    answer(resumed=state.step, path=path)
    while True:
        state.train()
        if order.get("spoils"):
            state.mine.add_(1)
        save(state, folder)
        if rank == 0:
            answer(saved=state.step)
        time.sleep(PAUSE_S)


def begin(*arguments):
    child = os.fork()
    if child == 0:
        try:
            work(*arguments)
        except BaseException:  # the child must not continue as its parent
            answer(failed=traceback.format_exc())
        os._exit(1)
    return child


def main():
    rank, first_host, folder, output = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    answer(ready=rank)
    child = None
    for line in sys.stdin:
        order = json.loads(line)
        if "begin" in order:
            child = begin(rank, first_host, folder, output, order)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            answer(ended=rank)


if __name__ == "__main__":
    main()
