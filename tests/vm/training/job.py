"""A training job of two processes that is killed repeatedly: Gloo and torch.distributed.checkpoint of Debian's PyTorch.

    job.py OUTPUT FOLDER PUBLISHED ROUNDS

OUTPUT watches FOLDER and sends to PUBLISHED, a folder on a volume. Each round runs `spark-stage latest` to find the
checkpoint to resume from, starts two processes that load it, train and save, and kills both at a random moment. In some
rounds the daemon is killed as well, or the node loses its data. Each process checks the loaded checkpoint. Prints a line of
JSON for each round. Exit status 1: a round resumed from a wrong checkpoint, with the reason.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from checkpoints import RANKS, State, dist, number_in, torch

RENDEZVOUS, SAVED = Path("/tmp/job.rendezvous"), Path("/tmp/job.saved")
MOST_SAVES, LONGEST_SAVE_S = 3, 1.0
KILL_DAEMON, LOSE_NODE = 2, 4  # round numbers modulo five
ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT


def work(rank, attempt, resume_from, folder, ready):
    dist.init_process_group("gloo", init_method=f"file://{RENDEZVOUS}", rank=rank, world_size=RANKS)
    state = State(rank, attempt)
    if resume_from and (reason := state.load(resume_from)):
        sys.exit(f"rank {rank}: {reason}")
    os.write(ready, b".")
    while True:
        state.train()
        path = folder / f"step-{state.step}"
        if rank == 0:
            shutil.rmtree(path, ignore_errors=True)  # left by a killed save
        dist.barrier()
        state.save(path)
        if rank == 0:
            with open(SAVED, "a") as saved:
                saved.write(f"{state.step}\n")
        time.sleep(0.2)


def start(rank, *arguments):
    child = os.fork()
    if child == 0:
        try:
            work(rank, *arguments)
        except SystemExit as wrong:
            print(wrong, file=sys.stderr, flush=True)
        except BaseException as error:  # the child must not continue as its parent
            print(f"rank {rank}: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)
    return child


def train_for_a_while(attempt, resume_from, folder):
    """Waits until both have resumed and some steps are saved, then kills both at a random moment during or between saves."""
    wanted = max(newest_saved(), number_in(resume_from) if resume_from else 0) + random.randint(0, MOST_SAVES)
    RENDEZVOUS.unlink(missing_ok=True)
    told, ready = os.pipe()
    children = [start(rank, attempt, resume_from, folder, ready) for rank in range(RANKS)]
    os.close(ready)
    resumed = b""
    while len(resumed) < RANKS and (more := os.read(told, RANKS)):
        resumed += more
    if len(resumed) == RANKS:
        while newest_saved() < wanted and not any(os.waitid(os.P_PID, child, ENDED) for child in children):
            time.sleep(0.05)
        time.sleep(random.uniform(0, LONGEST_SAVE_S))
    os.close(told)
    for child in children:
        os.kill(child, signal.SIGKILL)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if ends != [-signal.SIGKILL] * RANKS:
        sys.exit(f"a process ended without being killed: {ends}")


def newest_saved():
    return max((int(line) for line in SAVED.read_text().split()), default=0)


def newest_published(folder):
    pointer = folder / "latest"
    return number_in(os.readlink(pointer)) if pointer.is_symlink() else 0


def ask_latest(output, floor):
    """The path to resume from; None if no checkpoint is complete anywhere."""
    asked = subprocess.run(["spark-stage", "latest", output], capture_output=True, text=True)
    path = asked.stdout.strip() if asked.returncode == 0 else None
    step = number_in(path) if path else 0
    if step < floor or (path is None and asked.returncode != 3):
        sys.exit(f"`latest` gave step {step} ({path}), but {floor} is complete; exit status {asked.returncode}: {asked.stderr}")
    return path


def kill_daemon():
    pid = subprocess.run(["systemctl", "show", "-P", "MainPID", "spark-staged"], capture_output=True, text=True).stdout
    os.kill(int(pid), signal.SIGKILL)
    while subprocess.run(["spark-stage", "latest", sys.argv[1]], capture_output=True).returncode not in (0, 3):
        time.sleep(0.2)


def lose_node(folder):
    """The daemon may be deleting an old checkpoint there at the same time."""
    while paths := list(folder.iterdir()):
        for path in paths:
            if path.is_symlink():
                path.unlink(missing_ok=True)
            else:
                shutil.rmtree(path, ignore_errors=True)
    SAVED.write_text("")


def main():
    output, folder, published, rounds = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    SAVED.write_text("")
    for number in range(rounds):
        if number % 5 == KILL_DAEMON:
            kill_daemon()
        elif number % 5 == LOSE_NODE:
            lose_node(folder)
        floor = max(newest_saved(), newest_published(published))
        path = ask_latest(output, floor)
        train_for_a_while(number, path, folder)
        saved = newest_saved()
        print(json.dumps({"round": number, "resumed": path, "saved": saved, "published": newest_published(published)}), flush=True)


if __name__ == "__main__":
    main()
