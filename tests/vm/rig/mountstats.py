"""What an NFS client has asked its server for."""


def requests_of(host, mount):
    """The requests that the NFS client has sent for this mount, by name."""
    own = host.get("/proc/self/mountstats").split(f" mounted on {mount} ", 1)[1].split("\ndevice ", 1)[0]
    lines = own.split("per-op statistics", 1)[1].splitlines()
    return {name: int(counts.split()[0]) for name, counts in (line.strip().split(":", 1) for line in lines if ":" in line)}
