#include "bench/demand/job_files.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace spark::bench {
namespace {

constexpr Bytes kLargeFile = kMiB;
constexpr Bytes kReadAhead = 4 * kMiB;  // a buffered reader may be this far ahead of its read() counter
constexpr unsigned kFewestMoves = 8;
constexpr std::size_t kMostFiles = 1'000'000;  // limit on remembered names

constexpr std::array kSystemFolders = {"/usr", "/lib", "/lib64", "/bin",  "/sbin", "/etc", "/proc",
                                       "/sys", "/dev", "/run",   "/snap", "/boot", "/opt"};

bool is_below(const std::string& path, const std::string& folder) {
  return folder == "/" || is_at_or_below(path, folder);
}

}  // namespace

bool JobFiles::is_data(const std::string& path) const {
  const auto holds = [&](const std::string& folder) { return is_below(path, folder); };
  if (!folders_.empty()) return std::any_of(folders_.begin(), folders_.end(), holds);
  return std::none_of(kSystemFolders.begin(), kSystemFolders.end(), holds);
}

bool JobFiles::see(const ProcessReads& reads, Bytes called) {
  bool reads_data = false;
  for (const OpenFile& file : reads.files) {
    if (!is_data(file.path)) continue;
    reads_data = true;
    note_folder(file.path);
    if (sizes_.size() < kMostFiles) sizes_[file.path] = file.size;
    if (file.size >= kLargeFile) note_move(file, called);
    if (reads.is_asynchronous) (file.is_direct ? is_direct_ : is_buffered_) = true;
  }
  for (const MappedFile& file : reads.mapped) {
    // Without configured folders, indexes and caches of any program would count.
    if (!is_data(file.path) || (folders_.empty() && file.bytes < kLargeFile)) continue;
    reads_data = true;
    note_folder(file.path);
    if (mapped_.size() >= kMostFiles && !mapped_.contains(file.path)) continue;
    Bytes& most = mapped_[file.path];
    most = std::max(most, file.bytes);
  }
  if (reads_data && reads.is_asynchronous) is_asynchronous_ = true;
  return reads_data;
}

void JobFiles::note_folder(const std::string& path) {
  for (const std::string& folder : folders_) {
    if (is_below(path, folder)) used_folders_.insert(folder);
  }
}

// A move is forward if the process read at least the distance moved. An unchanged position, or one reset to
// the start of the file, is no evidence.
void JobFiles::note_move(const OpenFile& file, Bytes called) {
  const auto [entry, is_new] = last_.try_emplace({file.pid, file.fd}, file);
  const OpenFile before = std::exchange(entry->second, file);
  if (is_new || before.path != file.path || file.position == before.position || file.position == 0) return;
  const bool is_forward =
      file.position > before.position && file.position - before.position <= called + kReadAhead;
  ++(is_forward ? forward_ : jumps_);
}

Bytes JobFiles::mean_size() const {
  Bytes sum = 0;
  for (const auto& [path, size] : sizes_) sum += size;
  return sizes_.empty() ? 0 : sum / sizes_.size();
}

Bytes JobFiles::mapped_bytes() const {
  Bytes sum = 0;
  for (const auto& [path, bytes] : mapped_) sum += bytes;
  return sum;
}

ReadOrder JobFiles::order() const {
  if (forward_ + jumps_ < kFewestMoves) return ReadOrder::Unknown;
  if (forward_ >= 3 * jumps_) return ReadOrder::Sequential;
  return jumps_ >= 3 * forward_ ? ReadOrder::Random : ReadOrder::Unknown;
}

}  // namespace spark::bench
