#include "bench/files/cached_data.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/file.hpp"

namespace spark::bench {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kSamples = 1000;
constexpr std::size_t kMostFiles = 200'000;

using Files = std::vector<std::pair<std::string, Bytes>>;

void add_file(const fs::directory_entry& entry, Files& files) {
  std::error_code error;
  if (!entry.is_regular_file(error) || entry.is_symlink(error)) return;
  const Bytes size = entry.file_size(error);
  if (!error && size > 0) files.emplace_back(entry.path().string(), size);
}

Files files_in(const std::vector<std::string>& folders) {
  Files files;
  for (const std::string& folder : folders) {
    std::error_code error;
    add_file(fs::directory_entry(folder, error), files);
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
    for (; !error && entry != fs::recursive_directory_iterator() && files.size() < kMostFiles;
         entry.increment(error))
      add_file(*entry, files);
  }
  return files;
}

}  // namespace

std::optional<bool> is_cached(int fd, Bytes offset) {
  char byte = 0;
  const iovec into{&byte, 1};
  const ssize_t got = ::preadv2(fd, &into, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  if (got >= 0) return true;
  return errno == EAGAIN ? std::optional(false) : std::nullopt;
}

std::optional<Bytes> cached_data(const std::vector<std::string>& folders, const IsCached& is_cached_at) {
  const Files files = files_in(folders);
  Bytes all = 0;
  for (const auto& [path, size] : files) all += size;
  const Bytes step = std::max<Bytes>(1, all / kSamples);
  std::uint64_t asked = 0, known = 0, cached = 0;
  Bytes begin = 0, next = step / 2;  // of all files in their order
  for (const auto& [path, size] : files) {
    const Bytes end = begin + size;
    if (next < end) {
      const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      if (fd) ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);  // no read-ahead
      for (; next < end; next += step) {
        const auto told = fd ? is_cached_at(fd.get(), next - begin) : std::nullopt;
        ++asked;
        if (told) ++known;
        if (told.value_or(false)) ++cached;
      }
    }
    begin = end;
  }
  if (known == 0 || known < asked / 2) return std::nullopt;
  // The files that were not looked at may be cached; if a part of the others is, that is the least.
  if (files.size() >= kMostFiles && cached < known / 10) return std::nullopt;
  return static_cast<Bytes>(static_cast<double>(all) * static_cast<double>(cached) /
                            static_cast<double>(known));
}

}  // namespace spark::bench
