#include "staging/models/head.hpp"

#include <algorithm>
#include <cerrno>
#include <span>

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
    const ReadOutcome read = read_at(fd, {}, std::as_writable_bytes(std::span(bytes)).data(), want, offset);
    errno = read.error;
    if (read.error != 0) return std::nullopt;
    bytes.resize(read.bytes);
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
