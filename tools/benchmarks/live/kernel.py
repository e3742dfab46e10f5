"""What this kernel offers to a file system that a program serves; it says so in its first request."""
import ctypes
import os
import platform
import struct
import tempfile

_LIBC = ctypes.CDLL(None, use_errno=True)
_READ_ONLY_NOSUID_NODEV, _DETACH = 1 | 2 | 4, 2
_EXTENDED = 1 << 30
# In flags2: FUSE_PASSTHROUGH is 1 << 37 of both words, FUSE_HAS_RESEND 1 << 39.
_PASSTHROUGH, _RESEND = 1 << 5, 1 << 7


def facts():
    """Mounts one for a moment, in the caller's mount namespace."""
    device = os.open("/dev/fuse", os.O_RDWR)
    try:
        with tempfile.TemporaryDirectory() as folder:
            options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
            if _LIBC.mount(b"probe", folder.encode(), b"fuse", ctypes.c_ulong(_READ_ONLY_NOSUID_NODEV), options):
                raise OSError(ctypes.get_errno(), "mounting a FUSE file system")
            request = os.read(device, 1 << 17)
            _LIBC.umount2(folder.encode(), _DETACH)
    finally:
        os.close(device)
    major, minor, _, flags, more = struct.unpack_from("<5I", request.ljust(60, b"\0"), 40)
    more = more if flags & _EXTENDED else 0
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "protocol": f"{major}.{minor}",
            "passthrough": bool(more & _PASSTHROUGH), "resend": bool(more & _RESEND)}
