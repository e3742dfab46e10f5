// Text files with one line for each file of a dataset, read and written as a stream.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::staging {

class LineReader {
 public:
  static Result<LineReader> open(const std::filesystem::path& path);
  explicit LineReader(std::string_view text);  // of a text in memory

  // The next line without its newline; none at the end of the file, and for a last line without a newline.
  // Valid until the next call.
  std::optional<std::string_view> next();
  Result<> error() const;  // why reading stopped before the end
  Result<> rewind();
  std::optional<uid_t> owner() const;  // of the file; none for a text

 private:
  LineReader(UniqueFd file, std::string shown) : file_(std::move(file)), shown_(std::move(shown)) {}
  UniqueFd file_;
  std::string shown_;
  std::string buffer_;
  std::size_t at_ = 0;
  int failed_ = 0;  // errno
  bool read_more();
};

// Who may read a new file, whatever the umask is; by default its owner alone.
struct Readers {
  mode_t mode = 0600;
  gid_t group = static_cast<gid_t>(-1);  // of the bits for a group
};

// A file that gets its name only when it is complete and durable. Until then it is PATH.new, which commit()
// renames or the destructor deletes. A killed process leaves it for the next writer of that path to replace.
class LineWriter {
 public:
  static Result<LineWriter> create(const std::filesystem::path& path, Readers readers = {});
  LineWriter(LineWriter&&) = default;
  LineWriter& operator=(LineWriter&&) = delete;
  ~LineWriter();

  void add(std::string_view text);
  Result<> commit();  // also returns the first error of the earlier calls

 private:
  LineWriter(std::filesystem::path path, std::filesystem::path temporary, UniqueFd file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}
  std::filesystem::path path_, temporary_;
  UniqueFd file_;
  std::string waiting_;
  int failed_ = 0;  // errno
  void write_waiting();
};

}  // namespace spark::staging
