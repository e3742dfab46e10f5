"""Samples for the check of paths that other users may change."""
import unittest

import paths


class Paths(unittest.TestCase):
    def test_calls_that_follow_any_users_link_are_found(self):
        for code in ("::stat(path.c_str(), &info);", "::open(path.c_str(), O_RDONLY | O_CLOEXEC);", "::open((a / b(c)).c_str(), O_PATH)",
                     "std::filesystem::canonical(path, error)", "fs::exists(path, error)", "::access(path.c_str(), F_OK)",
                     "::statvfs(path.c_str(), &space)", "::openat(AT_FDCWD, path.c_str(), O_PATH)", "std::filesystem::remove_all(path)"):
            for path in ("staging/files/a.cpp", "staging/copy/a.cpp", "daemon/workers/verbs/a.cpp"):
                with self.subTest(code):
                    self.assertEqual(len(paths.check(path, code)), 1)

    def test_so_are_calls_that_follow_a_link_in_the_middle_of_the_path(self):
        for code in ("::open(path.c_str(), O_RDONLY | O_NOFOLLOW);", "::lstat(path.c_str(), &info);",
                     "::fstatat(AT_FDCWD, path.c_str(), &info, AT_SYMLINK_NOFOLLOW)", "::rename(from.c_str(), to.c_str())",
                     "std::filesystem::symlink_status(path, error)"):
            with self.subTest(code):
                self.assertEqual(len(paths.check("staging/files/a.cpp", code)), 1)

    def test_others_are_accepted(self):
        for path, code in (("staging/files/a.cpp", "open_named(path, Links::Followed);"), ("staging/files/a.cpp", "::fstat(fd, &info);"),
                           ("staging/files/a.cpp", "::openat(folder, name.c_str(), O_PATH | O_NOFOLLOW)"), ("cli/a.cpp", "::stat(path.c_str(), &info);"),
                           ("staging/cache/a.cpp", "::stat(path.c_str(), &info);"), ("staging/files/a.cpp", "// ::stat(path)"),
                           ("staging/files/a.cpp", "struct stat info {};"), ("staging/files/a.cpp", "file.open(path);")):
            with self.subTest(code):
                self.assertEqual(paths.check(path, code), [])
