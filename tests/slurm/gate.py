"""A file that blocks open() while the gate is closed, like a source on a frozen volume. Uses fanotify's permission events,
so it needs no timing: processes that open the file wait in the kernel until the gate opens."""
import ctypes
import os
import select
import struct
import threading

CLASS_CONTENT, CLOSE_ON_EXEC, ADD, OPEN_PERMISSION, AT_FDCWD = 0x4, 0x1, 0x1, 0x10000, -100
EVENT = struct.Struct("IBBHQii")
ALLOW = 1
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.fanotify_mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]


def checked(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


class Gate:
    """Closed from the start; `waiting` is the number of blocked processes."""

    def __init__(self, *paths):
        self.events = checked(LIBC.fanotify_init(CLASS_CONTENT | CLOSE_ON_EXEC, os.O_RDONLY | os.O_CLOEXEC), "fanotify_init")
        for path in paths:
            checked(LIBC.fanotify_mark(self.events, ADD, OPEN_PERMISSION, AT_FDCWD, os.fsencode(path)), f"fanotify_mark {path}")
        self.is_open = threading.Condition()
        self.opened, self.held = False, []
        self.stop_reading, self.stop_writing = os.pipe()
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def watch(self):
        while True:
            ready, _, _ = select.select([self.events, self.stop_reading], [], [])
            if self.stop_reading in ready:
                return
            events = os.read(self.events, 4096)
            while events:
                length, _, _, _, _, file, pid = EVENT.unpack_from(events)
                events = events[length:]
                with self.is_open:
                    if pid == os.getpid() or self.opened:
                        self.allow(file)
                    else:
                        self.held.append(file)
                    self.is_open.notify_all()

    def allow(self, file):
        try:
            os.write(self.events, struct.pack("iI", file, ALLOW))
        except OSError:
            pass  # it was killed while it waited
        os.close(file)

    def wait_for(self, count, patience_s=60):
        """Waits until this many processes in total have reached the closed gate."""
        with self.is_open:
            assert self.is_open.wait_for(lambda: len(self.held) >= count, patience_s), \
                f"{len(self.held)} of {count} reached the closed source"

    def open(self):
        with self.is_open:
            self.opened = True
            for file in self.held:
                self.allow(file)
            self.held = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open()
        os.close(self.stop_writing)
        self.watcher.join()
        for file in (self.stop_reading, self.events):  # without a reader of its events, the file opens normally
            os.close(file)
