#include "staging/models/head.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "staging/files/io/direct_io.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kBlock = 64 * kKiB;

}  // namespace

FileBytes bytes_of_file(int fd, Bytes size) {
  FileBytes file;
  file.size = size;
  file.read = [fd](Bytes offset, std::size_t want) -> std::optional<std::string> {
    std::string bytes(want, '\0');
    std::size_t have = 0;
    while (have < want) {
      const ssize_t got = ::pread(fd, bytes.data() + have, want - have, static_cast<off_t>(offset + have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return std::nullopt;
      if (got == 0) break;
      have += static_cast<std::size_t>(got);
    }
    drop_pages(fd, offset, want);
    bytes.resize(have);
    return bytes;
  };
  return file;
}

std::uint64_t Head::number(std::size_t bytes) {
  std::uint64_t value = 0;
  const std::string_view raw = text(bytes);
  for (std::size_t i = raw.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(raw[i - 1]);
  return value;
}

std::string_view Head::text(std::size_t bytes) {
  if (ended_) return {};
  if (bytes > file_->size || at_ > file_->size - bytes) {
    ended_ = true;
    return {};
  }
  if (at_ < begin_ || at_ + bytes > begin_ + buffer_.size()) {
    auto read = file_->read(at_, std::max(bytes, kBlock));
    failed_ = !read;
    ended_ = !read || read->size() < bytes;
    if (ended_) return {};
    buffer_ = std::move(*read);
    begin_ = at_;
  }
  const std::string_view found = std::string_view(buffer_).substr(at_ - begin_, bytes);
  at_ += bytes;
  return found;
}

void Head::skip(Bytes bytes) {
  ended_ = ended_ || bytes > file_->size || at_ > file_->size - bytes;
  if (!ended_) at_ += bytes;
}

}  // namespace spark::staging
