"""Folders with what copiers get wrong, changes to them, and their comparison."""
import os
import shutil
import socket
import stat
import subprocess

MIB = 1 << 20
LARGE = (MIB + 1, 3 * MIB, 8 * MIB, 8 * MIB + 1, 21 * MIB + 4097)  # around a piece of a file, which has 8 MiB
EXACT = ("--checksum", "--modify-window=-1")  # of itself rsync takes equal sizes and equal whole seconds for no change
HOLE = 5 << 30  # more than fits into 32 bits
NAMES = (b"new\nline", b"not-utf8-\xff\xfe", b"n" * 255, b" spaces 'and' \"quotes\" \\", b"-rf", "größe".encode())


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def make(root, random, small=150, large=LARGE, holes=True):
    """Files small, large, sparse, empty, linked twice and oddly named, and symlinks, in some folders."""
    root = os.fsencode(root)
    folders = [root, *(root + b"/folder-%d" % i for i in range(4)), root + b"/folder-1/deeper"]
    for folder in folders:
        os.mkdir(folder)
    for number, size in enumerate(large):
        write(random.choice(folders) + b"/large-%d" % number, random.randbytes(size))
    names = [*NAMES, *(b"small-%d" % i for i in range(small))]
    files = [random.choice(folders) + b"/" + name for name in names]
    for path in files:
        write(path, random.randbytes(random.choice((0, 1, 4095, 4096, 4097, random.randrange(60_000)))))
    if holes:
        with open(root + b"/sparse", "wb") as file:
            file.truncate(40 * MIB)
            os.pwrite(file.fileno(), random.randbytes(70_000), 17 * MIB - 3)
    for number, path in enumerate(random.sample(files, 5)):
        os.link(path, random.choice(folders) + b"/link-%d" % number)
        os.setxattr(path, "user.colour", b"blue")
        os.chmod(path, 0o640)
    os.symlink(b"small-1", root + b"/symlink")
    os.symlink(b"/nowhere", root + b"/folder-2/dangling")


def difficult(root):
    """Names and kinds of files that copiers get wrong, among them three that are neither file, folder nor symlink."""
    root = os.fsencode(root)
    os.mkdir(root)
    for name in NAMES:
        write(root + b"/" + name, b"content\n")
    for name, content in ((b"empty", b""), (b"one-byte", b"x"), (b"odd-size", os.urandom(4097)), (b"old", b"x"), (b"mode-0400", b"x"), (b"script.sh", b"#!")):
        write(root + b"/" + name, content)
    os.chmod(root + b"/mode-0400", 0o400)
    os.chmod(root + b"/script.sh", 0o755)
    os.utime(root + b"/old", ns=(981173106_123456789, 981173106_987654321))
    os.mkdir(root + b"/empty-folder")
    os.makedirs(root + b"/deep/" + b"/".join([b"d" * 100] * 12))
    with open(root + b"/sparse", "wb") as file:
        file.write(b"head")
        file.seek(HOLE)
        file.write(b"tail")
    for name, leads_to in ((b"inside", b"odd-size"), (b"outside", b"/etc/passwd"), (b"dangling", b"nowhere"), (b"loop", b".")):
        os.symlink(leads_to, root + b"/link-" + name)
    os.mkfifo(root + b"/fifo")
    os.mknod(root + b"/device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    socket.socket(socket.AF_UNIX).bind(root + b"/socket")


SKIPPED = {"device": "character device", "fifo": "FIFO", "socket": "socket"}


def files_below(root):
    found = [os.path.join(folder, name) for folder, _, names in os.walk(os.fsencode(root)) for name in names]
    return sorted(path for path in found if not os.path.islink(path))


def change(root, random):
    """Some files are replaced, cut short, written into, renamed, deleted; some are new."""
    root = os.fsencode(root)
    for path in random.sample(files_below(root), 6):
        match random.randrange(6):
            case 0:
                write(root + b"/new-%d" % random.randrange(1_000_000), random.randbytes(50_000))
            case 1:
                write(root + b"/.new", random.randbytes(os.path.getsize(path)))
                os.rename(root + b"/.new", path)
            case 2:
                os.truncate(path, os.path.getsize(path) // 2)
            case 3:
                with open(path, "r+b") as file:
                    file.write(random.randbytes(10))
            case 4:
                os.rename(path, root + b"/renamed-%d" % random.randrange(1_000_000))
            case 5:
                os.unlink(path)


def differences(source, copy):
    """What rsync would have to do to make the copy equal; empty: nothing."""
    end = "/" if os.path.isdir(source) else ""
    command = ["rsync", "-aHAXn", *EXACT, "--delete", "--itemize-changes", f"{source}{end}", f"{copy}{end}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    return done.stdout if done.returncode == 0 else f"rsync: {done.stderr}"


def clone(source, copy):
    """Anew: rsync does not part links of equal content that the source has parted."""
    shutil.rmtree(copy, ignore_errors=True)
    subprocess.run(["rsync", "-aHAX", *EXACT, f"{source}/", f"{copy}/"], check=True, timeout=120)


def bytes_on_disk(root):
    """Bytes below a folder that were written: neither holes nor room that is only set aside."""
    total = 0
    for path in files_below(root):
        with open(path, "rb") as file:
            end, at = os.fstat(file.fileno()).st_size, 0
            while at < end:
                try:
                    at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                except OSError:
                    break  # a hole up to the end
                hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
                total += hole - at
                at = hole
    return total
