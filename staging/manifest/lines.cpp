#include "staging/manifest/lines.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kBufferSize = 256 << 10;
constexpr std::size_t kLongestLine = 1 << 20;  // enough for a path of 32 KiB with every byte encoded as three

}  // namespace

Result<LineReader> LineReader::open(const std::filesystem::path& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return fail_errno(errno, "opening " + shown_path(path));
  return LineReader(std::move(file), shown_path(path));
}

LineReader::LineReader(std::string_view text) : buffer_(text) {}

bool LineReader::read_more() {
  if (!file_ || buffer_.size() - at_ > kLongestLine) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kBufferSize);
  ssize_t got = 0;
  do {
    got = ::read(file_.get(), buffer_.data() + before, kBufferSize);
  } while (got < 0 && errno == EINTR);
  if (got < 0) failed_ = errno;
  buffer_.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
  return got > 0;
}

std::optional<std::string_view> LineReader::next() {
  std::size_t end = buffer_.find('\n', at_);
  while (end == std::string::npos) {
    const std::size_t seen = buffer_.size() - at_;
    if (!read_more()) return std::nullopt;
    end = buffer_.find('\n', at_ + seen);
  }
  const std::string_view line(buffer_.data() + at_, end - at_);
  at_ = end + 1;
  return line;
}

Result<> LineReader::error() const {
  if (failed_ != 0) return fail_errno(failed_, "reading " + shown_);
  return {};
}

std::optional<uid_t> LineReader::owner() const {
  struct stat info {};
  return file_ && ::fstat(file_.get(), &info) == 0 ? std::optional(info.st_uid) : std::nullopt;
}

Result<> LineReader::rewind() {
  at_ = 0;
  if (!file_) return {};
  buffer_.clear();
  failed_ = ::lseek(file_.get(), 0, SEEK_SET) == 0 ? 0 : errno;
  return error();
}

Result<LineWriter> LineWriter::create(const std::filesystem::path& path, Readers readers) {
  std::filesystem::path temporary = path;
  temporary += ".new";
  ::unlink(temporary.c_str());
  UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail_errno(errno, "creating " + shown_path(temporary));
  // chown() needs membership in the group. File systems without permissions ignore the mode.
  if (::fchown(file.get(), static_cast<uid_t>(-1), readers.group) != 0) readers.mode &= ~mode_t{S_IRGRP};
  static_cast<void>(::fchmod(file.get(), readers.mode));
  return LineWriter(path, std::move(temporary), std::move(file));
}

LineWriter::~LineWriter() {
  if (file_) ::unlink(temporary_.c_str());
}

void LineWriter::add(std::string_view text) {
  waiting_ += text;
  if (waiting_.size() >= kBufferSize) write_waiting();
}

void LineWriter::write_waiting() {
  if (failed_ == 0) failed_ = write_all(file_.get(), waiting_);
  waiting_.clear();
}

Result<> LineWriter::commit() {
  write_waiting();
  if (failed_ == 0 && ::fsync(file_.get()) != 0) failed_ = errno;
  if (failed_ == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) failed_ = errno;
  if (failed_ != 0) return fail_errno(failed_, "writing " + shown_path(path_));
  file_.reset();
  return flush_folder(path_.parent_path());
}

}  // namespace spark::staging
