// Reads from the device itself, bypassing the page cache, so that another host's latest writes are seen.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::mounts {

class DirectReader {
 public:
  static Result<DirectReader> open(const std::filesystem::path& device);

  // Any offset and length; bytes beyond the device's end are missing from the result.
  Result<std::vector<std::uint8_t>> read(Bytes offset, std::size_t length) const;
  Bytes size() const { return size_; }

 private:
  DirectReader(UniqueFd fd, Bytes size, std::string name)
      : fd_(std::move(fd)), size_(size), name_(std::move(name)) {}

  UniqueFd fd_;
  Bytes size_;
  std::string name_;
};

// On-disk numbers at an address that the caller has checked.
template <class Number>
Number little_endian(const std::uint8_t* at) {
  Number number = 0;
  for (std::size_t i = sizeof(Number); i-- > 0;) number = static_cast<Number>(number << 8 | at[i]);
  return number;
}
template <class Number>
Number big_endian(const std::uint8_t* at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) number = static_cast<Number>(number << 8 | at[i]);
  return number;
}

}  // namespace spark::mounts
