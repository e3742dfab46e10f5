"""Configures the kernel's NVMe target through configfs, without a process per file, which would be slow on an emulated CPU."""
import os
import subprocess

CONFIGFS = "/sys/kernel/config"
NVMET = f"{CONFIGFS}/nvmet"


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)


def _names(folder):
    return os.listdir(folder) if os.path.isdir(folder) else []


def load():
    """Loads the module that provides subsystems, ports and hosts."""
    if not os.path.isdir("/sys/module/nvmet_tcp"):
        subprocess.run(["modprobe", "nvmet-tcp"], check=True)
    if not os.path.ismount(CONFIGFS):
        subprocess.run(["mount", "-t", "configfs", "none", CONFIGFS], check=True)


def export(nqn, device, uuid, is_open, reservations):
    load()
    subsystem = f"{NVMET}/subsystems/{nqn}"
    os.mkdir(subsystem)
    _write(f"{subsystem}/attr_allow_any_host", "1" if is_open else "0")
    return add(nqn, 1, device, uuid, reservations)


def add(nqn, number, device, uuid, reservations):
    namespace = f"{NVMET}/subsystems/{nqn}/namespaces/{number}"
    os.mkdir(namespace)
    _write(f"{namespace}/device_path", os.path.realpath(device))
    if os.path.isfile(device):
        _write(f"{namespace}/buffered_io", "1")
    _write(f"{namespace}/device_uuid", uuid)
    if reservations and os.path.exists(f"{namespace}/resv_enable"):
        _write(f"{namespace}/resv_enable", "1")
    _write(f"{namespace}/enable", "1")
    return b""


def link(nqn, address, port, tls=False):
    folder = f"{NVMET}/ports/{port}"
    if not os.path.isdir(folder):
        os.mkdir(folder)
        for name, value in (("trtype", "tcp"), ("adrfam", "ipv4"), ("traddr", address), ("trsvcid", str(port))):
            _write(f"{folder}/addr_{name}", value)
        if tls:
            _write(f"{folder}/addr_tsas", "tls1.3")
            _write(f"{folder}/addr_treq", "required")
    os.symlink(f"{NVMET}/subsystems/{nqn}", f"{folder}/subsystems/{nqn}")
    return b""


def unlink(nqn, port):
    os.unlink(f"{NVMET}/ports/{port}/subsystems/{nqn}")
    return b""


def allow(nqn, hostnqn):
    os.makedirs(f"{NVMET}/hosts/{hostnqn}", exist_ok=True)
    os.symlink(f"{NVMET}/hosts/{hostnqn}", f"{NVMET}/subsystems/{nqn}/allowed_hosts/{hostnqn}")
    return b""


def forbid(nqn, hostnqn):
    os.unlink(f"{NVMET}/subsystems/{nqn}/allowed_hosts/{hostnqn}")
    return b""


def replace(nqn, device, uuid):
    """Replaces the device or identity of the subsystem's namespace 1; without a device there is none until the next call."""
    namespace = f"{NVMET}/subsystems/{nqn}/namespaces/1"
    _write(f"{namespace}/enable", "0")
    if device:
        _write(f"{namespace}/device_path", device)
        _write(f"{namespace}/device_uuid", uuid)
        _write(f"{namespace}/enable", "1")
    return b""


def remove(nqn):
    """Removes the subsystem from all ports, and the ports that then offer nothing."""
    for port in _names(f"{NVMET}/ports"):
        folder = f"{NVMET}/ports/{port}"
        if os.path.islink(f"{folder}/subsystems/{nqn}"):
            os.unlink(f"{folder}/subsystems/{nqn}")
        if not _names(f"{folder}/subsystems"):
            os.rmdir(folder)
    subsystem = f"{NVMET}/subsystems/{nqn}"
    for host in _names(f"{subsystem}/allowed_hosts"):
        os.unlink(f"{subsystem}/allowed_hosts/{host}")
    for number in _names(f"{subsystem}/namespaces"):
        _write(f"{subsystem}/namespaces/{number}/enable", "0")
        os.rmdir(f"{subsystem}/namespaces/{number}")
    if os.path.isdir(subsystem):
        os.rmdir(subsystem)
    return b""
