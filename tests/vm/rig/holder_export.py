"""A volume that its holder exports to another host with the kernel's NFS server, as described in docs/many-writers.md."""
from . import blocks

PAGE = "docs/many-writers.md"
UNIT = "export-checkpoints.service"
BOTH = "/mnt/both"


class HolderExport:
    """holder, other: machines with the volume's holder first. out: the folder of both hosts' jobs."""

    def __init__(self, holder, other, volume, mount, out):
        self.holder = holder
        self._here = (("10.0.0.1", holder.address), ("10.0.0.2", other.address), ("/mnt/checkpoints", mount),
                      ("wait checkpoints", f"wait {volume}"), ("take checkpoints", f"take {volume}"), ("checkpoints:", f"{volume}:"), ("/data/out", out), ("sudo ", ""))

    def on_these_hosts(self, text):
        """Replaces the page's names and addresses by the scenario's."""
        for there, here in self._here:
            text = text.replace(there, here)
        return text

    def line(self, begin):
        """A command of the page."""
        return self.on_these_hosts(blocks.line(PAGE, begin))

    def volumes(self):
        """The volume `both` in the page's configuration."""
        keys = dict(line.strip().split(": ", 1) for line in self.on_these_hosts(blocks.find(PAGE, "volumes:").text).splitlines()[2:])
        assert keys["mount"] == BOTH and keys["access"] == "exclusive", keys
        return {"both": keys}

    def start(self):
        self.holder.put("/etc/exports", self.on_these_hosts(blocks.find(PAGE, "# /etc/exports").text))
        unit = self.on_these_hosts(blocks.find(PAGE, "# /etc/systemd/system/export-checkpoints.service").text)
        self.holder.put(f"/etc/systemd/system/{UNIT}", unit)
        self.holder.sh(self.on_these_hosts(blocks.find(PAGE, "sudo systemctl disable --now nfs-server").text), 120)

    def stop(self):
        self.holder.run(
            f"systemctl disable --now {UNIT}; systemctl stop nfs-server; rm -f /etc/systemd/system/{UNIT} /etc/exports", 60)
