"""Two hosts write one volume: its holder exports it to the other with the kernel's NFS server, as described in docs/many-writers.md."""
import time
from contextlib import contextmanager

from rig.holder_export import BOTH, HolderExport
from rig.house import LOCAL, TARGET_ADDRESS
from rig.pair import MOUNT, NAME
from rig.product import config_text
from test_stage_out import rows, wait_progress

OUT = f"{LOCAL}/out"


def export_of(pair):
    return HolderExport(*pair.hosts, NAME, MOUNT, OUT)


def configure(pair, index, volumes):
    if index == 0:
        volumes = {NAME: pair.body("exclusive"), **volumes}
        pair.products[0].configure(pair.house.config(volumes=volumes))
    else:
        pair.products[1].configure(config_text(targets={"rose": {"address": TARGET_ADDRESS}}, volumes=volumes))


def save(pair, index, step, mib):
    """Saves a host's own part of a checkpoint, and nothing that other scenarios left under this name."""
    pair.hosts[index].sh(f"rm -rf {OUT}/{step} && mkdir -p {OUT}/{step} && head -c {mib}M /dev/urandom >{OUT}/{step}/__{index}_0.distcp && sync -f {OUT}")


def sum_of(machine, path):
    return machine.sh(f"sha256sum <{path}", 120)


def assert_published(pair, step, indexes):
    for index in indexes:
        name = f"__{index}_0.distcp"
        assert sum_of(pair.hosts[0], f"{MOUNT}/run7/{step}/{name}") == sum_of(pair.hosts[index], f"{OUT}/{step}/{name}")
    assert pair.products[1].run(f"verify both:run7/{step}", 120).rc == 0


def let_go(pair):
    """Takes down the two volumes of one file system, the exported one last."""
    for index in (1, 0):
        pair.products[index].run("volumes down both", 120)
        configure(pair, index, {})
        pair.hosts[index].run(f"rm -rf {OUT}")
    export_of(pair).stop()


@contextmanager
def exported(pair):
    """The holder's volume is `both` on each host."""
    pair.configure(0, "exclusive")
    pair.products[0].wait_volume(NAME, "ready", 120)
    export = export_of(pair)
    try:
        export.start()
        for index in (0, 1):
            configure(pair, index, export.volumes())
            pair.products[index].wait_volume("both", "ready", 120)
        yield export
    finally:
        let_go(pair)


def begin_slowly(pair, step):
    """Sends a checkpoint from the other host; returns the job's number once some of it is copied."""
    save(pair, 1, step, 32)
    job = pair.products[1].sh(f"stage-out {OUT}/{step} both:run7/{step} --max-rate 2MB/s --detach").strip()
    wait_progress(pair.products[1], lambda row: row.get("bytes_done", 0) > 4 << 20)
    return job


def test_both_hosts_write_an_exported_volume_and_wait_for_a_holder_without_power(pair):
    holder = pair.hosts[0]
    with exported(pair) as export:
        for index in (0, 1):
            save(pair, index, "step-1000", 8)
        typed = export.line("spark-stage stage-out /data/out/step-1000 both:")
        for sending in [machine.spawn(f"exec {typed}") for machine in pair.hosts]:
            sent = sending.wait(180)
            assert sent.rc == 0, sent.err
        assert_published(pair, "step-1000", (0, 1))

        job = begin_slowly(pair, "step-1100")
        holder.sh("sync -f /etc/spark-stage")
        holder.kill()
        wait_progress(pair.products[1], lambda row: row["phase"] == "stalled", 120)
        print("the other host says:", rows(pair.products[1])[0]["reason"])
        pair.house.start_host()
        holder.wait_until("spark-stage status", 120)
        pair.products[0].wait_volume(NAME, "ready", 180)
        ended = pair.products[1].run(f"wait --job {job}", 300)
        assert ended.rc == 0, ended.err
        assert_published(pair, "step-1100", (1,))
        pair.house.wait_ready()


def test_the_other_host_continues_alone_if_the_holder_does_not_return(pair):
    holder, (machine, product) = pair.hosts[0], (pair.hosts[1], pair.products[1])
    with exported(pair) as export:
        save(pair, 1, "step-1000", 8)
        product.sh(f"stage-out {OUT}/step-1000 both:run7/step-1000", 180)
        job = begin_slowly(pair, "step-1100")
        holder.sh("sync -f /etc/spark-stage")
        holder.kill()
        product.wait_volume("both", "stalled", 120)
        refused = product.run("volumes down both")
        assert refused.rc == 7 and "volumes down both --force" in refused.err, refused.err
        began = time.monotonic()
        product.machine.sh(export.line("sudo spark-stage volumes down both --force"), 60)
        print(f"forced down in {time.monotonic() - began:.1f} s")
        assert product.volume("both")["state"] == "down" and machine.run(f"mountpoint -q {BOTH}").rc != 0
        told = wait_progress(product, lambda row: "was taken down by" in row.get("reason", ""))
        assert told["phase"] == "stalled", told

        configure(pair, 1, {NAME: pair.body("exclusive")})
        ended = product.run(f"wait --job {job}", 120)
        assert ended.rc == 3 and "no volume both in the configuration" in ended.err, ended.err
        product.wait_volume(NAME, "refused", 120)
        machine.sh(export.line("sudo spark-stage volumes take checkpoints") + " --yes", 300)
        product.wait_volume(NAME, "ready", 120)
        assert machine.sh(f"ls {MOUNT}/run7").split() == ["step-1000"]
        machine.sh(export.line("spark-stage stage-out /data/out/step-1100 checkpoints:"), 180)
        for step in ("step-1000", "step-1100"):
            assert sum_of(machine, f"{MOUNT}/run7/{step}/__1_0.distcp") == sum_of(machine, f"{OUT}/{step}/__1_0.distcp")
            assert product.run(f"verify {NAME}:run7/{step}", 120).rc == 0
        pair.house.start_host()
        holder.wait_until("spark-stage status", 120)
        pair.products[0].wait_volume(NAME, "refused", 180)
        pair.house.wait_ready()
