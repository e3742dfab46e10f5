// Small helpers for files; a failure of the world's own call ends the history.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace spark::histories::copies {

[[noreturn]] void throw_errno(const std::string& doing);
std::string bytes_of(const std::filesystem::path& file);
ino_t inode_of(const std::filesystem::path& file);  // 0: there is none

}  // namespace spark::histories::copies
