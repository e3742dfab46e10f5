"""The copiers compared, one command line each. All except spark-stage, which ends when its copy is durable, are followed by `sync -f`."""
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from shlex import quote
from typing import Callable

OURS, BEFORE, CEILING, WALK = "spark-stage", "before", "fio", "walk"


@dataclass(frozen=True)
class Contender:
    name: str
    programs: dict                  # program it needs → Debian package that has it
    command: Callable               # (set, source, dest) → shell command
    restages: bool = False          # also takes part if an earlier copy exists
    copies: bool = True             # False: not a copier, but a reference
    sets: tuple = ()                # only these; empty: all

    def missing(self):
        """The Debian packages to install; empty if none is missing."""
        return sorted({package for program, package in self.programs.items() if not shutil.which(program)})

    def takes_part(self, made):
        return made.name in self.sets if self.sets else self.restages or not made.restage

    def version(self):
        if not self.copies:
            return None
        program = list(self.programs)[0]
        # fpsync has no --version; its help begins with the version.
        done = subprocess.run([program, "-h" if program == "fpsync" else "--version"], capture_output=True, text=True,
                              check=False)
        return ((done.stdout or done.stderr).strip().splitlines() or [""])[0]


def _durable(command):
    return lambda made, source, dest: f"{command(made, quote(source), quote(dest))} && sync -f {quote(dest)}"


def _rsync(made, source, dest):
    # Options for features that plain -a loses: hard links and holes.
    more = {"models": " -H", "sparse": " -S"}.get(made.name, "")
    return f"rsync -a --whole-file{more} {source}/ {dest}"


def _fpsync(_made, source, dest):
    return f"mkdir {dest} && fpsync -n 4 -t \"$TMPDIR\" {source}/ {dest}/"


def _rclone(_made, source, dest):
    return (f"rclone copy --config '' --quiet --links --metadata --create-empty-src-dirs --multi-thread-streams 8 "
            f"{source} {dest}")


def _parallel_cp(jobs):
    """Splits by top-level entry: one folder each if there are folders, else eight batches of files per job."""
    def command(_made, source, dest):
        return (f"mkdir {dest} && cd {source} && "
                f"batch=$(( $(find . -mindepth 1 -maxdepth 1 -printf x | wc -c) / {8 * jobs} )) && "
                f"find . -mindepth 1 -maxdepth 1 -print0 | "
                f"xargs -0 -P {jobs} -n $((batch > 0 ? batch : 1)) cp -a -t {dest}")
    return command


def _walk(_made, source, _dest):
    return f"find {quote(source)} -type f -printf '%p %s %T@ %i\\n' > /dev/null"


def _fio(_made, source, dest):
    """Reads the source and writes the target at the same time, with a queue depth and block size suited to direct I/O."""
    files = sorted(os.scandir(source), key=lambda entry: entry.name)
    size = sum(entry.stat().st_size for entry in files)
    names = quote(":".join(entry.path for entry in files))
    common = "--direct=1 --bs=2M --iodepth=16 --output-format=json"
    jobs = (f"--name=read --rw=read --filename={names} --file_service_type=sequential "
            f"--name=write --rw=write --directory={quote(dest)} --nrfiles={len(files)} --filesize={size // len(files)} "
            f"--file_service_type=sequential --fallocate=native --end_fsync=1")
    return (f"mkdir {quote(dest)} && {{ fio {common} --ioengine=io_uring {jobs} 2>/dev/null || "
            f"fio {common} --ioengine=libaio {jobs}; }}")


def fio_seconds(output):
    """The time of the slower side, without fio's own start."""
    jobs = {job["jobname"]: job for job in json.loads(output[output.index("{"):])["jobs"]}
    return max(jobs[side][side]["runtime"] for side in ("read", "write")) / 1000


def _spark_stage(name, binary):
    def command(_made, source, dest, more=""):
        return f"{quote(binary)} copy {quote(source)} {quote(dest)} --json{more}"
    return Contender(name, {binary: "make build"}, command, restages=True)


def all_of(binary, before=None):
    """By name, in display order. `before`: an earlier spark-stage, which takes part too."""
    rsync = {"rsync": "rsync"}
    found = [
        _spark_stage(OURS, binary),
        *([_spark_stage(BEFORE, before)] if before else []),
        Contender("cp", {"cp": "coreutils"}, _durable(lambda _made, source, dest: f"cp -a {source} {dest}")),
        Contender("rsync", rsync, _durable(_rsync), restages=True),
        Contender("rclone", {"rclone": "rclone"}, _durable(_rclone)),
        Contender("fpsync", {"fpsync": "fpart", **rsync}, _durable(_fpsync)),
        Contender("cp-x4", {"cp": "coreutils", "xargs": "findutils"}, _durable(_parallel_cp(4))),
        Contender("cp-x8", {"cp": "coreutils", "xargs": "findutils"}, _durable(_parallel_cp(8))),
        Contender(CEILING, {"fio": "fio"}, _fio, copies=False, sets=("large",)),
        Contender(WALK, {"find": "findutils"}, _walk, copies=False, sets=("unchanged", "changed")),
    ]
    return {contender.name: contender for contender in found}
