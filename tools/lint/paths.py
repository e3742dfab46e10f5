"""Finds calls that follow any user's link with root's rights, in the code that workers run as root.

Paths that other users may change are for open_named() and open_tree(); what is in a Tree, for open_beneath(). A process that
has become a user (become_user) has that user's rights, and may call the kernel; such files are named here with the reason.
"""
import re

from sources import code_of, line_of

FOLLOWS = "follows any user's link with root's rights: use open_named() of base/access/, or open_tree()"

_FOLDERS = ("staging/", "daemon/workers/", "fleet/serve/", "fleet/fetch/")
_ALLOWED = {
    "staging/files/tree.cpp": "opens what a Tree has, and private folders",
    "staging/files/space.cpp": "asks a held descriptor, and the system's own folders",
    "staging/files/quiet_source.cpp": "a source of stage-out or copy, with the user's rights",
    "staging/outputs/": "outputs, with the rights of their owner",
    "daemon/workers/verbs/live/": "mount points in the cache, which root alone changes",
    "staging/view/": "the state folder's own folder for views, memory, and mount points in the cache: all private",
    "staging/checkpoints/": "outputs, with the rights of their owner",
    "staging/copy/need.cpp": "an unfinished copy: in the cache it is private; beside a destination its user asks",
    "staging/copy/copy.cpp": "the command `copy`, with the user's rights",
    "staging/copy/partial/": "beside a destination, which its user names; in the cache it is private",
    "staging/cache/": "the cache and the state folder, which are private",
    "staging/manifest/lines.cpp": "beside a copy, which its user names; in the cache it is private",
    "staging/leases/": "the system's own folders",
    "staging/files/io/": "descriptors, and the system's own folders",
    "fleet/serve/": "the cache and the state folder, which are private",
    "daemon/workers/priority.cpp": "the system's own folders",
    "daemon/workers/unmounted_folder.cpp": "only looks names up, and tells a mount point of fstab",
    "daemon/workers/verbs/fabric_verbs.cpp": "the system's own folders",
    "daemon/workers/verbs/fleet.cpp": "the state folder, which is private",
    "daemon/workers/verbs/lease_verbs.cpp": "the cache and the state folder, which are private",
    "daemon/workers/verbs/mount_verbs.cpp": "the volume's device",
    "daemon/workers/verbs/open_cache.cpp": "the cache, which is private",
    "daemon/workers/verbs/output_verbs.cpp": "after become_user()",
    "daemon/workers/verbs/checkpoint_verbs.cpp": "after become_user()",
    "daemon/workers/verbs/protocol.cpp": "/dev/null",
    "daemon/workers/verbs/hold_volume.cpp": "the volume's mount point, which is root's",
    "daemon/workers/verbs/cache_verbs.cpp": "the volume's mount point, which is root's",
}
# Any path, also with O_NOFOLLOW, which is for its last name alone: a link in the middle is followed.
_CALL = re.compile(
    r"(?<![\w.>])(?:"
    r"::(?:access|chdir|chmod|chown|lchown|link|lstat|mkdir|mknod|open|opendir|readlink|realpath|rename|rmdir|stat|statfs|statvfs|symlink|"
    r"truncate|unlink|l?[gs]etxattr)\s*\("
    r"|::(?:faccessat|fchmodat|fchownat|fstatat|linkat|mkdirat|openat|readlinkat|renameat2?|statx|symlinkat|unlinkat|utimensat)"
    r"\s*\(\s*AT_FDCWD\b"
    r"|(?:(?:std::)?(?:filesystem|fs)::)(?:canonical|copy\w*|create_\w+|directory_iterator|equivalent|exists|file_size|hard_link_count|"
    r"is_\w+|last_write_time|permissions|read_symlink|recursive_directory_iterator|remove|remove_all|rename|resize_file|space|status|"
    r"symlink_status|weakly_canonical)\b"
    r")")


def check(path, text):
    if not path.startswith(_FOLDERS) or path.startswith(tuple(_ALLOWED)):
        return []
    return [f"{path}:{line_of(code_of(text), found.start())}: this {FOLLOWS}" for found in _CALL.finditer(code_of(text))]
