// The beginning of a file, read in order, and without filling the page cache.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"

namespace spark::staging {

// A file's size, and its bytes. `read` returns fewer bytes than wanted only at the end of the file, and no
// value if reading failed, with the reason in errno.
struct FileBytes {
  Bytes size = 0;
  std::function<std::optional<std::string>(Bytes offset, std::size_t want)> read;
};

// Of an open regular file. The descriptor must stay open as long as the value is used.
FileBytes bytes_of_file(int fd, Bytes size);

// Takes integers (little endian) and texts from the beginning of a file. After the first one that is not
// there, because the file is too short or could not be read, everything is empty and `ended()` is true.
class Head {
 public:
  explicit Head(const FileBytes& file) : file_(&file) {}

  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::uint64_t number(std::size_t bytes);   // of 1, 2, 4 or 8 bytes
  std::string_view text(std::size_t bytes);  // valid until the next call
  void skip(Bytes bytes);

  Bytes at() const { return at_; }
  bool ended() const { return ended_; }
  bool failed() const { return failed_; }  // the file could not be read

 private:
  const FileBytes* file_;
  std::string buffer_;  // of the file, from `begin_` on
  Bytes begin_ = 0, at_ = 0;
  bool ended_ = false, failed_ = false;
};

}  // namespace spark::staging
