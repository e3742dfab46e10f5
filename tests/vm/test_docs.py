"""What the pages tell people to type is typed here, or in the test that the table names."""
import shlex

import pytest

from rig import blocks
from rig.house import TARGET_ADDRESS
from rig.product import CONFIG
from rig.settings import REPOSITORY

PAGES_ADDRESS = "192.168.0.100"
NOT_COMMANDS = {"text", "cpp", "json"}
# A block by the begin of its first line, and who runs it otherwise: a file, and words of it that do.
ELSEWHERE = {
    "make demo ": (".ci/run", "make check"),
    "make test ": (".ci/run", "make check"),
    "make build ": ("tools/steps.py", "--preset"),
    "tools/setup.sh bench": ("tools/setup.sh", "bench"),
    "/usr/bin/python3 -m pytest tests/crash": ("tools/steps.py", "tests/crash"),
    "sudo tools/setup.sh": ("tests/vm/test_package.py", "apt-get"),
    "sudo tools/setup.sh build && make build": ("tests/install/install_test.py", "--install"),
    "curl -sS --unix-socket /run/spark-stage/api.sock http://localhost/v1": ("tests/api", "api.md"),
    "curl -sS --unix-socket /run/spark-stage/api.sock -X": ("tests/api", "api.md"),
    "job=$(curl": ("tests/api", "api.md"),
    "lease=$(curl": ("tests/api", "api.md"),
    "spark-stage import ": ("tests/vm/test_moving.py", "import --output"),
    "spark-stage config check": ("tests/vm/test_moving.py", "umount {MOUNT}"),
    "[exclusions]": ("tests/vm/test_neighbours.py", "[exclusions]"),
    "[I/O controller connection management]": ("tests/vm/test_stas.py", "exclude=transport=tcp;traddr="),
    "sudo ln -s /dev/null": ("tests/vm/test_neighbours.py", "ln -sf /dev/null"),
    "sudo apt install ktls-utils": ("tests/vm/test_tls.py", "systemctl start tlshd"),
    "sudo systemctl enable --now tlshd": ("tests/vm/test_tls.py", "systemctl start tlshd"),
    "sudo spark-stage volumes format": ("tests/vm/test_format.py", "volumes format"),
    "sudo spark-stage volumes publish": ("tests/vm/test_publish.py", "volumes up"),
    "sudo spark-stage volumes take": ("tests/vm/test_sharing.py", "volumes take"),
    "sudo spark-stage volumes down": ("tests/vm/test_format.py", "host new-identity"),
    "srun -N 8": ("tests/unit/cli/bench_test.cpp", "\"merge\""),
}
# Lines that need a compiler, or are for a computer that is not there yet.
BUILDING = ("git clone", "sudo tools/setup.sh", "make build", "sudo make install")
# What belongs to a cluster: each does the least that the real one would.
STUBS = {
    "sudo": 'exec "$@"',
    "python": 'exec python3 "$@"',
    "torchrun": 'exec python3 "$@"',
    "srun": 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"',
    "docker": 'for one; do case $one in type=bind,src=*) from=${one#type=bind,src=}; ls "${from%%,*}" | grep -q . ;; esac; done',
    "ssh": 'shift; exec "$@"',
}
TRAIN = "import os, sys\nsys.exit(not any('data' in one for one in [*sys.argv[1:], *os.environ.values()]))\n"
MORE_THAN_FINE = {"docs/doctor.md": (0, 1)}  # 1: it found something, as it should on a machine that was made in a hurry


def who_runs(block):
    found = [where for begin, where in sorted(ELSEWHERE.items(), key=lambda one: -len(one[0]))
             if block.lines[0].startswith(begin)]
    return found[0] if found else None


def commands(page):
    return [block for block in blocks.of_page(page)
            if block.language not in NOT_COMMANDS | {"yaml"} and not who_runs(block)]


def pages(wanted):
    return list(dict.fromkeys(block.page for block in blocks.everywhere() if wanted(block)))


COMMAND_PAGES = [page for page in pages(lambda block: True) if commands(page)]


def test_what_is_not_typed_here_is_typed_where_the_table_says():
    known = [block for block in blocks.everywhere() if block.language not in NOT_COMMANDS]
    for begin, (path, words) in ELSEWHERE.items():
        assert any(block.lines[0].startswith(begin) for block in known), f"no page has a block that begins with {begin!r}"
        place = REPOSITORY / path
        files = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.cpp")]
        assert any(words in file.read_text() for file in files), f"{path} does not say {words!r}: who runs {begin!r}?"


@pytest.fixture(scope="module")
def desk(house):
    """The house with the names that the pages use; a person's folder is /root/desk."""
    host = house.host
    for name, text in STUBS.items():
        host.put(f"/usr/local/bin/{name}", f"#!/bin/sh\n{text}\n", "755")
    host.sh("mkdir -p /root/desk /opt/train /data /mnt/nas; cp -r /mnt/rosa-storage/small /mnt/nas/imagenet")
    host.put("/root/desk/train.py", TRAIN)
    host.put("/opt/train/start", "#!/bin/sh\nls $SPARK_STAGE_IMAGENET\n", "755")
    sets = {"imagenet": {"volume": "datasets", "path": "images"}, "models": {"volume": "datasets", "path": "small"}}
    text = house.config(datasets=sets)
    house.product.configure(text)
    yield house, text
    host.sh(f"rm -rf /root/desk /opt/train /data /mnt/nas {' '.join(f'/usr/local/bin/{name}' for name in STUBS)}")
    for name in sets:
        house.product.run(f"evict {name}")
    house.product.configure(house.config())
    house.wait_ready()


def as_typed(block):
    """The pages' address is the target's; what measures for minutes says what it would do."""
    lines = [line for line in block.lines if not line.startswith(BUILDING)]
    lines = [line.replace("spark-stage bench", "spark-stage bench --dry-run", 1) if "bench report" not in line and
             "bench compare" not in line else f": {line}" for line in lines]
    return "\n".join(lines).replace(PAGES_ADDRESS, TARGET_ADDRESS) + "\n"


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_the_commands_of_a_page_work_as_they_stand_there(desk, page):
    house, text = desk
    for block in commands(page):
        if block.language == "ini":
            house.host.put("/run/systemd/system/train.service", block.text)
            typed = "systemctl daemon-reload; systemctl start train; until systemctl show -P Result,ActiveState train " \
                    "| paste -sd' ' | grep -q inactive; do sleep 0.2; done; systemctl show -P Result train | grep -x success\n"
        else:
            typed = as_typed(block)
        if "import --output" in typed:  # a new file; an existing one is never overwritten
            house.host.sh(f"mv {CONFIG} {CONFIG}.before")
        script = f"cd /root/desk; export USER=root SLURM_JOB_COMMENT=stage:imagenet; set -eo pipefail; {{ {typed}}} </dev/null"
        result = house.host.run(f"bash -c {shlex.quote(script)}", 240)
        house.product.configure(text)
        assert result.rc in MORE_THAN_FINE.get(page, (0,)), f"{block}\n{typed}\n{result.out}{result.err}"


@pytest.mark.parametrize("block", [block for block in blocks.everywhere() if block.language == "yaml"], ids=str)
def test_the_configurations_of_the_pages_are_accepted(desk, block):
    house, _ = desk
    version = "" if block.lines[0].startswith("version:") else "version: 1\n"
    house.host.put("/root/desk/page.yaml", version + block.text)
    house.product.sh("config check /root/desk/page.yaml")
