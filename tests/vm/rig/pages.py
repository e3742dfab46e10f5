"""Where the commands of the documentation are tested if a machine can't type them: other tests, steps, or this computer."""
from . import blocks
from .settings import BUILD

NOT_COMMANDS = {"text", "cpp", "json"}
HERE = "tests/vm/test_docs.py"
API = ("tests/api/test_examples.py", "test_every_example_of_the_api_page_works_in_its_order", "examples()")
EXPORT = ("tests/vm/test_export.py", "test_both_hosts_write_an_exported_volume_and_wait_for_a_holder_without_power")
ALONE = ("tests/vm/test_export.py", "test_the_other_host_continues_alone_if_the_holder_does_not_return")
# Blocks by the beginning of their first line: the test that runs them, and a string in its source as proof.
BLOCKS_ELSEWHERE = {
    "curl -sS --unix-socket /run/spark-stage/api.sock http://localhost/v1": API,
    "curl -sS --unix-socket /run/spark-stage/api.sock -X": API,
    "job=$(curl": API,
    "lease=$(curl": API,
    "#!/bin/sh": ("tests/slurm/test_page.py", "test_the_scripts_of_the_page_train_on_four_nodes", 'block(begin)'),
    "srun --nodes=4 --stage=imagenet": (
        "tests/slurm/test_page.py", "test_the_first_job_of_the_page_counts_entries_on_each_node", "srun --nodes=4"),
    "echo 'include /etc/slurm": (
        "tests/slurm/test_page.py", "test_the_line_of_the_page_enables_the_plugin", "echo 'include /etc/slurm"),
    "sudo spark-stage fleet key --output": (
        "tests/fleet/test_exchange.py", "test_the_key_made_by_the_steps_of_the_page_is_valid", '"fleet", "key", "--output"'),
    "spark-stage stage-out ": ("tests/vm/test_stage_out.py",
                               "test_a_sent_checkpoint_is_complete_and_leaves_the_page_cache_unchanged",
                               "stage-out {NEW} {VOLUME}:run7/step-1000"),
    "spark-stage stage-out /data/out/step-1000 both:": (*EXPORT, 'step-1000 both:"'),
    "sudo spark-stage volumes down both --force": (*ALONE, 'sudo spark-stage volumes down both --force'),
    "sudo systemctl reload spark-staged": (*ALONE, 'step-1100 checkpoints:'),
    "# /etc/systemd/system/export-checkpoints.service": (
        "tests/vm/rig/holder_export.py", "start", '"# /etc/systemd/system/export-checkpoints.service"'),
    "sudo systemctl disable --now nfs-server": (
        "tests/vm/rig/holder_export.py", "start", '"sudo systemctl disable --now nfs-server"'),
    "spark-staged --sim ": ("tests/api/simulated.py", "__init__", '"--sim"'),
    "spark-stage bench --with": ("tests/vm/test_bench_hosts.py", "measured", "--with host2"),
    "[I/O controller connection management]": (
        "tests/vm/test_stas.py", "test_a_volume_excluded_in_stacd_stays_down", "exclude=transport=tcp;traddr="),
    "[exclusions]": (HERE, "test_a_connection_excluded_by_the_administrator_is_refused", '"[exclusions]"'),
    "sudo ln -s /dev/null": (HERE, "test_the_daemon_listens_when_nvme_clis_rule_is_off", '"sudo ln -s /dev/null"'),
    "sudo systemctl enable --now tlshd": ("tests/vm/test_tls.py", "shaking", "nvme check-tls-key --identity 0 --insert"),
    "sudo spark-stage config check": (
        "tests/vm/test_package.py", "test_three_lines_of_configuration_make_a_volume_ready", '"sudo spark-stage config check"'),
    "sudo spark-stage volumes format": (HERE, "test_a_volume_is_made_published_and_taken_over", "volumes format models"),
    "sudo spark-stage volumes publish": (HERE, "test_a_volume_is_made_published_and_taken_over", "volumes publish models"),
    "sudo spark-stage volumes take": (HERE, "test_a_volume_is_made_published_and_taken_over", "volumes take models"),
    "sudo spark-stage volumes down datasets": (
        "tests/vm/test_bare.py", "test_files_below_a_mount_point_do_not_prevent_mounting_and_are_named", "chattr -i"),
    "lsblk -o NAME,SIZE": (HERE, "test_the_steps_that_erase_a_disk_leave_it_blank", '"lsblk -o NAME,SIZE"'),
    "sudo spark-stage volumes down": (HERE, "test_a_clone_gets_an_identity_of_its_own", '"sudo spark-stage volumes down"'),
}
# Pages that one test types from start to end.
PAGES_ELSEWHERE = {
    "docs/two-sparks.md": ("tests/vm/test_tutorial.py", "test_the_tutorial_works_as_written", "of_page(PAGE)"),
    "docs/first-data.md": ("tests/vm/test_pages.py", "test_the_page_on_an_empty_volume_works_as_written", "commands(DATA)"),
    "docs/moving-in.md": (
        "tests/vm/test_moving.py", "test_the_page_moves_the_setup_and_stages_its_first_dataset", "blocks.of_page(PAGE)"),
    "docs/change.md": ("tests/vm/test_pages.py", "test_the_page_on_changes_works_as_written", "commands(CHANGE)"),
}
# Lines, in the same format.
LINES_ELSEWHERE = {
    "sudo apt install ./build/deb/": (
        "tests/vm/test_package.py", "test_the_package_installs_with_its_dependencies_and_starts_nothing", '"sudo apt install"'),
    "sudo apt install ./build/deb/spark-stage-slurm": (
        "tests/slurm/test_package.py", "test_the_package_can_be_installed_beside_its_version_of_slurm", '"--simulate"'),
    "sudo apt install ./build/deb/spark-stage-csi": (
        "tests/csi/test_package.py", "test_it_can_be_installed", '"--simulate"'),
    "sudo SPARK_STAGE_PURGE=data apt purge": (
        "tests/vm/test_package.py", "test_purging_data_removes_staged_data_but_no_key_and_no_mount",
        '"sudo SPARK_STAGE_PURGE=data"'),
    "sudo apt install ktls-utils": ("tests/vm/rig/image.py", "_packages", "PACKAGES_OF"),
    "sudo systemctl enable --now tlshd": ("tests/vm/test_tls.py", "shaking", "systemctl start tlshd"),
    "sudo spark-stage host new-identity": (HERE, "test_a_clone_gets_an_identity_of_its_own", "host new-identity"),
    "sudo make install": ("tests/install/install_test.py", "install", '"cmake", "--install"'),
    "srun --stage=imagenet:now python train.py": (
        "tests/slurm/test_live.py", "test_a_task_begins_at_once_and_reads_what_arrives", '"--stage=imagenet:now"'),
    "make try": (
        "tests/api/test_simulation.py", "test_make_try_shows_the_example_and_leaves_nothing_behind", "tools/try.py"),
    "make demo": (HERE, "test_the_demo_completes", '"demo"'),
}
# Lines that need a compiler, another computer or an hour: the step of tools/steps.py that runs them, and a part of its
# commands.
SET_UP = ("setup", "tools/setup.sh test")  # the set "test" has all of "build" and "package"
SCENARIOS = "-m pytest tests/vm"
CRASHES = ("crash", "/usr/bin/python3 -m pytest tests/crash -c tests/crash/pytest.ini")
HISTORIES = ("histories-volumes", "build/release/tests/histories/volumes/spark_volumes_histories --seed")
BY_STEP = {
    "sudo tools/setup.sh build": SET_UP,
    "sudo tools/setup.sh package": SET_UP,
    "sudo tools/setup.sh others": ("arm64", "tools/setup.sh others"),
    "tools/setup.sh  ": SET_UP,
    "make build": ("build", "cmake --build --preset release"),
    "cmake --preset release && cmake --build --preset release": ("build", "cmake --build --preset release"),
    "make deb ": ("package", "tools/deb.sh"),
    "sudo make debs": ("arm64-13", "tools/deb-for.sh"),
    "make lint": ("lint", "tools/lint/run.py"),
    "make format": ("lint", "tools/lint/run.py"),  # which finds what it would change
    "make check-long": ("many", "tests/vm/test_many.py"),
    "make test": ("unit", "ctest --test-dir build/release"),  # built as the programs are in that step
    "make histories": HISTORIES,
    "build/release/tests/histories/volumes/spark_volumes_histories": HISTORIES,
    "make check STEPS=debian13": ("debian13", "tests/vm/test_tls.py"),
    "/usr/bin/python3 -m pytest tests/crash": CRASHES,
    "SPARK_CRASH_SEED=": CRASHES,
    "SPARK_CRASH_PROGRAM=": CRASHES,
    "/usr/bin/python3 -m pytest tests/vm/test_rig.py": ("vm-long", SCENARIOS),
    "/usr/bin/python3 -m pytest tests/vm": ("vm-6.1-all", SCENARIOS),
    "SPARK_VM_KERNEL=newest": ("vm-newest", SCENARIOS),
    "SPARK_VM_PATIENCE=": ("vm-newest", SCENARIOS),
}
# For lines such as `make deb`: the command that the make target runs.
RECIPES = {"build": "cmake --build --preset release", "deb": "tools/deb.sh", "debs": "tools/deb-for.sh",
           "lint": "tools/lint/run.py", "format": "clang-format-14 -i", "install": "cmake --install build/release --prefix",
           "check": "tools/check.py", "check-long": "tools/check.py --long", "test": "ctest --test-dir build/dev", "histories": "_histories --seed", "demo": "tests/vm/demo.py",
           "try": "tools/try.py"}
# Commands run by .ci/run, which also starts from a checkout.
BY_CI = ("make check",)
NOBODY = ("git clone", "sudoedit")
# Lines for the build computer, run here: with small sizes, and without writing into the checkout.
SMALL = f"--scale 0.005 --rounds 1 --sets small --contenders spark-stage,cp --binary {BUILD}/cli/spark-stage"
ON_THIS_COMPUTER = {
    "tools/setup.sh bench": ("setup.sh bench", "setup.sh list bench debian-12"),
    "make bench-staging": ("make", "make --dry-run"),
    "python3 tools/benchmarks/staging": ("/mnt/rosa-storage --target /data", "SOURCE --target TARGET"),
}


def of(table, line):
    """The table's entry with the longest matching beginning of the line; None if there is none."""
    fits = [begin for begin in table if line.startswith(begin)]
    return max(fits, key=len) if fits else None


def is_elsewhere(block):
    return block.page in PAGES_ELSEWHERE or of(BLOCKS_ELSEWHERE, block.lines[0]) is not None


def lines_for_the_machine(block):
    others = (LINES_ELSEWHERE, BY_STEP, BY_CI, NOBODY, ON_THIS_COMPUTER)
    return [line for line in block.lines if not any(of(table, line) for table in others)]


def commands(page):
    return [block for block in blocks.of_page(page)
            if block.language not in NOT_COMMANDS | {"yaml"} and not is_elsewhere(block) and lines_for_the_machine(block)]


ALL = [block for block in blocks.everywhere() if block.language not in NOT_COMMANDS]
PAGES = [page for page in dict.fromkeys(block.page for block in ALL) if commands(page)]
