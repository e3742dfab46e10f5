"""What an NFS client has asked its server for."""


def requests_of(host, mount):
    """The requests that the NFS client has sent for this mount, by name."""
    lines = _of(host, mount).split("per-op statistics", 1)[1].splitlines()
    return {name: int(counts.split()[0]) for name, counts in (line.strip().split(":", 1) for line in lines if ":" in line)}


def bytes_read(host, mount):
    """The bytes of files that the server has sent."""
    return int(_of(host, mount).split("\tbytes:\t", 1)[1].split()[4])


def _of(host, mount):
    return host.get("/proc/self/mountstats").split(f" mounted on {mount} ", 1)[1].split("\ndevice ", 1)[0]
