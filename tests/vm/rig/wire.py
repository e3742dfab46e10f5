"""The network of a topology."""
import contextlib
import ctypes
import os
import socket

NETWORK = "10.77.0"
PIDFD_GETFD = 438  # the same number on every architecture
SO_RCVBUFFORCE = 33
RECEIVE_BUFFER = 16 << 20


class Wire:
    """One Ethernet segment between machines: multicast on the loopback interface; nothing leaves this computer."""

    def __init__(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]

    def arguments(self, number):
        return ["-netdev", f"socket,id=wire,mcast=230.0.0.1:{self._port},localaddr=127.0.0.1",
                "-device", f"virtio-net-pci,id=nic,netdev=wire,host_mtu=9000,romfile=,mac=52:54:00:77:00:{number:02x}"]

    def widen(self, pid):
        """Enlarges the receive buffer of a QEMU's network socket for TCP's bursts; QEMU has no option for it.

        Without the permission to do so, the network drops packets and is slower.
        """
        libc = ctypes.CDLL(None)
        process = os.pidfd_open(pid)
        for name in os.listdir(f"/proc/{pid}/fd"):
            if not os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                continue  # a duplicate of a disk's descriptor would keep its lock
            fd = libc.syscall(PIDFD_GETFD, process, int(name), 0)
            if fd < 0:
                continue
            with socket.socket(fileno=fd) as channel:
                if channel.family == socket.AF_INET and channel.type == socket.SOCK_DGRAM:
                    with contextlib.suppress(PermissionError):
                        channel.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
        os.close(process)
