"""A volume written by one host alone, for its outputs; every checkpoint on it is checked at the end."""
import json
import time
from contextlib import contextmanager

from .settings import patience


@contextmanager
def own_volume(owner, name, *, size="256M", outputs=None, **sections):
    """owner: a House or a Trainer. outputs, sections: of its configuration. Afterwards nothing is being sent any more; all
    checkpoints on the volume are whole, and so is its file system. Gives the volume's configuration."""
    target, product = owner.target, owner.product
    device = target.image(name, size)
    target.filesystem(device, name=name, mmp=True)
    target.export(name, device)
    volumes = {name: {"target": "rose", "subsystem": name, "mount": f"/mnt/{name}", "access": "exclusive", "fence": "mmp"}}
    try:
        product.configure(owner.config(volumes=volumes, **sections))
        product.wait_volume(name, "ready", 120)
        if outputs:
            product.configure(owner.config(volumes=volumes, outputs=outputs, **sections))
        yield volumes
        product.configure(owner.config(volumes=volumes, **sections))
        wait_until(owner, lambda: not product.status()["stage_outs"])
        assert_whole(product, name, f"/mnt/{name}")
        down = product.run(f"volumes down {name}", 120)
        assert down.rc == 0, down.err
        product.configure(owner.config())
        target.remove(name)
        checked = target.machine.run(f"e2fsck -fn {device}", 120)
        assert checked.rc == 0, checked.out + checked.err
    finally:
        product.run(f"volumes down {name}", 120)
        product.configure(owner.config())
        target.remove(name)
        target.machine.sh(f"rm -f {device}")
        owner.host.sh(f"rm -f /var/lib/spark-stage/volumes/{name}.*")


def assert_whole(product, volume, mount):
    """Every published copy on the volume has the content of its manifest, and each `latest` leads to one."""
    machine = product.machine
    manifests = machine.sh(f"cd {mount} && find . -name '.*.spark-manifest' -printf '%P\\n'").split()
    copies = [path.replace("/.", "/").removeprefix(".").removesuffix(".spark-manifest") for path in manifests]
    there = [path for path in copies if machine.run(f"test -e {mount}/{path}").rc == 0]
    for path in there:
        verified = product.run(f"verify {volume}:{path}", 120)
        assert verified.rc == 0, verified.err
    for link in machine.sh(f"cd {mount} && find . -name latest -printf '%P\\n'").split():
        folder = link.removesuffix("latest")
        named = machine.sh(f"cd {mount} && readlink {link} || cat {link}").strip()
        assert folder + named in there, f"{link} names {named}, which is not whole; whole are {there}"
    return there


def wait_until(owner, holds, deadline=120, folders=""):
    """`folders` are listed if it fails."""
    end = time.monotonic() + patience(deadline)
    while not holds():
        assert time.monotonic() < end, (json.dumps(owner.product.status()["outputs"]) +
                                        (owner.host.sh(f"ls -lA {folders} || true") if folders else ""))
        time.sleep(0.5)
