// The key that all hosts of a fleet share.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace spark::fleet {

// 32 random bytes as 64 hexadecimal digits, the format of a key file.
Result<std::string> new_key();

// The key in a key file's text. Invalid: not a key.
Result<std::string> parse_key(std::string_view text);

// Invalid: not a key file. Refused: it belongs to neither root nor this process's user, or others may read
// it.
Result<std::string> read_key(const std::filesystem::path& file);

// Notices that a process still uses a key that its file no longer has. Used by one thread.
class KeyWatch {
 public:
  // `key`: the one in use.
  KeyWatch(std::filesystem::path file, std::string key) : file_(std::move(file)), key_(std::move(key)) {}

  // Reads the file. True if it has another key, or if it had none at the last call either: a file that is
  // being written may have no key for a moment.
  bool is_replaced();

 private:
  std::filesystem::path file_;
  std::string key_;
  bool was_missing_ = false;
};

}  // namespace spark::fleet
