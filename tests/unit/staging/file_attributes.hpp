// Replaces the results of the C library's fstat and statx in this program, as set by a test.
#pragma once

#include <sys/stat.h>

#include <functional>

namespace spark::staging::test {

// Called after the real call, from any thread. Empty: the result is not changed.
struct FileAttributes {
  std::function<void(struct stat& info)> on_fstat;
  std::function<void(int folder, const char* path, int flags, struct statx& info)> on_statx;
};

FileAttributes& file_attributes();

}  // namespace spark::staging::test
