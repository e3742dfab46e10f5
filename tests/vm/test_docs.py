"""Runs the commands of the documentation, here or in the test or step listed in rig/pages.py."""
import ast
import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache

import pytest

from rig import blocks
from rig.house import TARGET_ADDRESS
from rig.pages import (ALL, BLOCKS_ELSEWHERE, BY_CI, BY_STEP, LINES_ELSEWHERE, NOBODY, ON_THIS_COMPUTER, PAGES, PAGES_ELSEWHERE,
                       RECIPES, SMALL, commands, lines_for_the_machine, of)
from rig.product import CONFIG
from rig.settings import BUILD, REPOSITORY
from test_format import empty
from test_neighbours import wait_rose

sys.path.append(str(REPOSITORY / "tools"))
import steps  # noqa: E402  the table of `make check`

PAGES_ADDRESS = "192.168.0.100"
PAGES_RUN = "20261120T16"
# Replacements for the programs of a cluster, with minimal behaviour; srun starts two tasks with different host names.
STUBS = {
    "sudo": 'exec "$@"',
    "python": 'exec python3 "$@"',
    "torchrun": 'exec python3 "$@"',
    "srun": """while [ "${1#-}" != "$1" ]; do [ "$1" != -N ] || shift; shift; done
for name in node1 node2; do unshare --uts sh -c 'hostname "$0"; exec "$@"' $name "$@" & all="$all $!"; done
for one in $all; do wait "$one" || exit; done""",
    "ssh": 'shift; exec "$@"',
}
# Succeeds if it was given a folder with files by spark-stage, or a path with "data" in it.
TRAIN = """import os, sys
folders = [value for name, value in os.environ.items() if name.startswith('SPARK_STAGE_') and os.path.isdir(value)]
sys.exit(not (any(os.listdir(one) for one in folders) or any('data' in one for one in [*sys.argv[1:], *os.environ.values()])))
"""
# Real measurements that take seconds instead of minutes.
QUICK = "--size 16MiB --runtime 1s --rounds 1"
READS_ON = "sh -c 'for pass in $(seq 80); do cat $SPARK_STAGE_IMAGENET/* >/dev/null; sleep 0.1; done'"


# --- commands that are tested elsewhere ---

@cache
def source_of(path, function):
    text = (REPOSITORY / path).read_text()
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == function]
    assert len(found) == 1, f"{path} has {len(found)} functions {function}"
    return ast.get_source_segment(text, found[0])


def commands_of_step(name):
    def flat(value):
        return [one for part in value for one in flat(part)] if isinstance(value, list) else [value]

    found = {one for value in vars(steps).values() for one in flat(value)
             if isinstance(one, steps.Step) and one.name == name}
    assert len(found) == 1, f"tools/steps.py has {len(found)} steps {name}"
    return "\n".join(" ".join(str(word) for word in command) for command in found.pop().commands)


def recipe(target):
    return subprocess.run(["make", "--dry-run", "--no-print-directory", target], cwd=REPOSITORY, check=True,
                          capture_output=True, text=True).stdout


def test_each_line_of_a_table_is_on_a_page():
    first = [block.lines[0] for block in ALL]
    every = [line for block in ALL for line in block.lines]
    for table, lines in ((BLOCKS_ELSEWHERE, first), (LINES_ELSEWHERE, every), (BY_STEP, every), (BY_CI, every),
                         (NOBODY, every), (ON_THIS_COMPUTER, every)):
        for begin in table:
            assert any(of(table, line) == begin for line in lines), f"no page has a line that begins with {begin!r}"


@pytest.mark.parametrize("begin", [*BLOCKS_ELSEWHERE, *PAGES_ELSEWHERE, *LINES_ELSEWHERE])
def test_the_named_test_runs_the_command(begin):
    for table in (BLOCKS_ELSEWHERE, PAGES_ELSEWHERE, LINES_ELSEWHERE):
        if begin in table:
            path, function, word = table[begin]
            assert word in source_of(path, function), f"{path}, {function} does not say {word!r}"


def test_the_named_steps_run_the_command():
    for begin, (step, words) in BY_STEP.items():
        assert words in commands_of_step(step), f"{begin!r} is not done by the step {step}: {commands_of_step(step)}"
    ci = "\n".join(line for line in (REPOSITORY / ".ci/run").read_text().splitlines() if not line.startswith("#"))
    for command in BY_CI:
        assert re.search(rf"{command}\b", ci), f".ci/run does not run {command!r}"


def test_the_make_targets_on_the_pages_run_the_listed_commands():
    named = {match for block in ALL for line in block.lines if not of(ON_THIS_COMPUTER, line)
             for match in re.findall(r"\bmake (?!-)([a-z-]+)", blocks.without_remark(line))}
    assert named == set(RECIPES)
    for target, words in RECIPES.items():
        assert words in recipe(target), f"make {target}:\n{recipe(target)}"


# The benchmark flushes every file system before each run, including those with the machines' disks, which may take minutes.
@pytest.mark.parametrize("line", dict.fromkeys(
    blocks.without_remark(line) for block in ALL for line in block.lines if of(ON_THIS_COMPUTER, line)))
def test_the_commands_for_the_build_computer_work_there(line, tmp_path):
    typed = line.replace(*ON_THIS_COMPUTER[of(ON_THIS_COMPUTER, line)])
    if "tools/benchmarks/staging" in typed and "make" not in typed:
        for folder in ("SOURCE", "TARGET"):
            (tmp_path / folder).mkdir()
            typed = typed.replace(folder, str(tmp_path / folder))
        typed = f"{typed} {SMALL}"
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", typed], cwd=REPOSITORY, capture_output=True, text=True,
                          timeout=1800)
    assert done.returncode == 0, f"{typed}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("block", [block for block in ALL if block.language == "yaml"], ids=str)
def test_the_configurations_of_the_pages_are_accepted(block, tmp_path):
    version = "" if block.lines[0].startswith("version:") else "version: 1\n"
    (tmp_path / "page.yaml").write_text(version + block.text)
    checked = subprocess.run([BUILD / "cli/spark-stage", "config", "check", tmp_path / "page.yaml"], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# Blank as `volumes format` demands: no signature, and zeros in the first and last 4 MiB. test_format.py formats such a device.
@pytest.mark.skipif(os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK), reason="loop devices need root")
def test_the_steps_that_erase_a_disk_leave_it_blank(tmp_path):
    *erase, last = blocks.find("docs/troubleshooting.md", "lsblk -o NAME,SIZE").lines
    assert "volumes format" in last
    image, ends, middle = tmp_path / "used", 4 << 20, 8 << 20
    image.write_bytes(os.urandom(64 << 20))
    (tmp_path / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (tmp_path / "sudo").chmod(0o755)

    def typed(command):
        return subprocess.run(["bash", "-euc", command], env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
                              check=True, capture_output=True, text=True, timeout=120).stdout.strip()

    typed(f"mkfs.ext4 -q -F {image}")
    device = typed(f"losetup --find --show {image}")
    try:
        assert "ext4" in typed(f"wipefs {device}")
        typed("\n".join(erase).replace("DEVICE", device))
        assert typed(f"wipefs {device}") == ""
    finally:
        typed(f"losetup --detach {device}")
    content = image.read_bytes()
    assert not any(content[:ends]) and not any(content[-ends:]) and any(content[middle:-middle])


@pytest.mark.skipif(not os.environ.get("SPARK_VM_DEMO"), reason="two more machines for some minutes: SPARK_VM_DEMO=1 runs it")
def test_the_demo_completes():
    done = subprocess.run(["make", "demo"], cwd=REPOSITORY, env={**os.environ, "SPARK_VM_LANE": "demo"}, capture_output=True,
                          text=True, timeout=2400)
    assert done.returncode == 0 and "Staged: " in done.stdout, done.stdout + done.stderr


# --- commands that are typed on a machine ---

@pytest.fixture(scope="module")
def desk(house):
    """The house with the names used in the pages, and an earlier benchmark; /root/desk is the user's folder."""
    host = house.host
    for name, text in STUBS.items():
        host.put(f"/usr/local/bin/{name}", f"#!/bin/sh\n{text}\n", "755")
    host.sh("mkdir -p /root/desk /opt/train /data /mnt/nas; cp -r /mnt/rosa-storage/small /mnt/nas/imagenet")
    host.put("/root/desk/train.py", TRAIN)
    host.put("/opt/train/start", "#!/bin/sh\nls $SPARK_STAGE_IMAGENET\n", "755")
    sets = {"imagenet": {"volume": "datasets", "path": "images"}, "models": {"volume": "datasets", "path": "small"},
            **{f"phase{number}": {"volume": "datasets", "path": "small"} for number in (1, 2, 3)}}
    text = house.config(datasets=sets)
    house.product.configure(text)
    house.product.sh(f"bench local=/local --scenario latency {QUICK} --json /root/desk/before.json", 300)
    run = json.loads(host.get("/root/desk/before.json"))["run_id"]
    yield house, text, run
    host.sh("rm -rf /root/desk /opt/train /data /mnt/nas /local/job /local/over /etc/spark-stage/keys/psk "
            f"{' '.join(f'/usr/local/bin/{name}' for name in STUBS)}")
    for name in sets:
        # The last test has restarted the daemon, which may still look over its cache.
        host.wait_until(f"spark-stage evict {name} >/tmp/evicted 2>&1; ! grep 'try again in a moment' /tmp/evicted", 120)
        row = house.product.dataset(name)
        assert row["state"] == "absent", f"{name}: {host.get('/tmp/evicted')}; its leases: {row['leases']}"
    house.product.configure(house.config())
    house.wait_ready()


def as_typed(line, run):
    """Replaces the pages' address by the target's and their run by an existing one; shortens benchmarks to seconds."""
    if re.search(r"spark-stage doctor\b", line):  # 1: it has findings, as expected on a test machine
        return f"{{ {blocks.without_remark(line)}; }} || [ $? = 1 ]"
    if re.search(r"spark-stage bench(?!\s+(demand|report|compare|merge|list)\b)", line):
        line = re.sub(r" --(size|runtime|rounds) \S+", "", line)
        scenario = "" if "--scenario" in line else "--scenario latency "
        line = line.replace("spark-stage bench", f"spark-stage bench {scenario}{QUICK}", 1)
    if "bench demand" in line:  # the pages' job ends too soon to be measured
        line = line.replace("python train.py", READS_ON)
    if f"--output {CONFIG}" in line:  # existing files are never overwritten
        line = f"rm {CONFIG}; {line}"
    return line.replace(PAGES_ADDRESS, TARGET_ADDRESS).replace(PAGES_RUN, run)


def type_here(house, typed, answer="", deadline=600):
    """Types the commands like a user, in a control group that ends with them, and answers prompts."""
    script = f"cd /root/desk; export USER=root SLURM_JOB_COMMENT=stage:imagenet; set -eo pipefail\n{typed}\n"
    result = house.host.run(f"systemd-run --scope --quiet bash -c {shlex.quote(script)}", deadline,
                            stdin=f"{answer}\n".encode() if answer else b"")
    return result, f"{typed}\n{result.out}{result.err}"


def unit_of(block):
    """How to start a unit and wait for its end."""
    return "systemctl daemon-reload; systemctl start train; until systemctl show -P Result,ActiveState train " \
           "| paste -sd' ' | grep -q inactive; do sleep 0.2; done; systemctl show -P Result train | grep -x success"


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_as_written(desk, page):
    house, text, run = desk
    try:
        for block in commands(page):
            if block.language == "ini":
                house.host.put("/run/systemd/system/train.service", block.text)
                typed = unit_of(block)
            else:
                typed = "\n".join(as_typed(line, run) for line in lines_for_the_machine(block))
            result, shown = type_here(house, typed)
            house.product.configure(text)
            house.wait_ready()
            assert result.rc == 0, f"{block}\n{shown}"
    finally:
        house.end_leases()


def expect(house, typed, answer=""):
    result, shown = type_here(house, typed, answer)
    assert result.rc == 0, shown


def test_a_volume_is_made_published_and_taken_over(desk):
    house, text, _ = desk
    page = "docs/sharing.md"
    by_hand, by_script = blocks.find(page, "sudo spark-stage volumes format models").lines
    try:
        house.host.sh("rm -f /var/lib/spark-stage/volumes/models*.json")  # records of other scenarios' volumes
        with empty(house, "models-1"):  # a name belongs to one file system
            expect(house, by_hand.replace("models ", "models-1 "), answer="models-1")
            house.product.wait_volume("models-1", "ready", 120)
        with empty(house, "models"):
            expect(house, by_script)
            house.product.wait_volume("models", "ready", 120)
            expect(house, blocks.find(page, "sudo spark-stage volumes publish models").text)
            house.product.wait_volume("models", "ready", 120)
            house.host.sh("touch /mnt/models/written-again")
            house.product.sh("volumes down models", 120)
            expect(house, blocks.find(page, "sudo spark-stage volumes take models").text, answer="models")
            house.product.wait_volume("models", "ready", 120)
    finally:
        house.product.configure(text)
        house.wait_ready()


def test_a_clone_gets_an_identity_of_its_own(desk):
    house, text, _ = desk
    nqn, host_id = (house.host.get(f"/etc/nvme/{name}") for name in ("hostnqn", "hostid"))
    busy = house.product.run("host new-identity --yes")
    assert busy.rc == 7 and "volumes are up: datasets" in busy.err, busy
    try:
        expect(house, "umask 077\n" + blocks.find("docs/sharing.md", "sudo spark-stage volumes down").text, answer="yes")
        house.wait_ready()
        fresh, fresh_id = (house.host.get(f"/etc/nvme/{name}") for name in ("hostnqn", "hostid"))
        assert fresh == f"nqn.2014-08.org.nvmexpress:uuid:{fresh_id}" != nqn
        assert [house.host.get(f"/etc/nvme/{name}.old") for name in ("hostnqn", "hostid")] == [nqn, host_id]
        assert house.host.sh("stat -c %a /etc/nvme/hostnqn /etc/nvme/hostid").split() == ["644", "644"]
        assert fresh in house.host.sh("cat /sys/class/nvme/*/hostnqn 2>/dev/null || true")
    finally:
        house.product.run("volumes down", 120)
        house.host.sh("cd /etc/nvme && for f in hostnqn hostid; do [ ! -e $f.old ] || mv $f.old $f; done")
        house.product.run("volumes up", 120)
        house.wait_ready()


DISCOVERY_CONNECTIONS = "dmesg | grep -c 'new ctrl: NQN \"nqn.2014-08.org.nvmexpress.discovery\"' || true"  # made by the kernel


def test_a_connection_excluded_by_the_administrator_is_refused(desk):
    house, _, _ = desk
    text = blocks.find("docs/neighbours.md", "[exclusions]").text.replace(PAGES_ADDRESS, TARGET_ADDRESS)
    house.product.sh("volumes down datasets", 120)
    house.host.put("/etc/nvme/exclusions.conf", text)
    try:
        house.product.run("volumes up datasets")
        assert "/etc/nvme/exclusions.conf:2 excludes it" in house.product.wait_volume("datasets", "refused")["reason"]
        # If the exclusion names the target's address, no discovery request is sent to it.
        house.host.put("/etc/nvme/exclusions.conf", f"# all\n[exclusions]\nexclusion = transport=tcp;traddr={TARGET_ADDRESS}\n")
        asked = house.host.sh(DISCOVERY_CONNECTIONS)
        house.product.run("volumes up datasets")
        house.product.wait_volume("datasets", lambda volume: "/etc/nvme/exclusions.conf:3" in (volume["reason"] or ""))
        assert house.host.sh(DISCOVERY_CONNECTIONS) == asked
    finally:
        house.host.sh("rm /etc/nvme/exclusions.conf")
        house.product.run("volumes up datasets", 120)
        house.wait_ready()


def test_the_daemon_listens_when_nvme_clis_rule_is_off(desk):
    house, _, _ = desk
    try:
        expect(house, blocks.find("docs/neighbours.md", "sudo ln -s /dev/null").text)
        house.wait_ready()
        wait_rose(house, lambda target: target["controller"] and target["asked_at"])
    finally:
        house.host.sh("rm -f /etc/udev/rules.d/70-nvmf-autoconnect.rules && udevadm control --reload")
        house.product.restart()
        house.wait_ready()


