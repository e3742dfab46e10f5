#include "bench/files/existing_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

#include "base/file.hpp"
#include "bench/files/scratch.hpp"

namespace spark::bench {
namespace {

struct Folder {
  std::string path;
  unsigned depth = 0;
};

class Walk {
 public:
  explicit Walk(const WalkLimits& limits)
      : limits_(limits), end_(std::chrono::steady_clock::now() + limits.time) {}

  FoundFiles run(const std::string& top) {
    struct stat status {};
    if (::stat(top.c_str(), &status) != 0) return {};
    device_ = status.st_dev;
    waiting_.push_back({top, 0});
    while (!waiting_.empty() && !is_over()) {
      const Folder folder = std::move(waiting_.front());
      waiting_.pop_front();
      read(folder);
    }
    if (!waiting_.empty()) found_.complete = false;
    if (!limits_.sample) std::sort_heap(found_.files.begin(), found_.files.end(), larger);
    for (const DataFile& file : found_.files) found_.bytes += file.bytes;
    return std::move(found_);
  }

 private:
  static bool larger(const DataFile& a, const DataFile& b) { return a.bytes > b.bytes; }

  bool is_over() const {
    return found_.entries >= limits_.entries || std::chrono::steady_clock::now() >= end_;
  }

  void read(const Folder& folder) {
    UniqueFd fd(::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return;
    const std::unique_ptr<DIR, int (*)(DIR*)> opened(::fdopendir(fd.get()), ::closedir);
    if (!opened) return;
    fd.release();
    here_ = {};
    while (const dirent* entry = ::readdir(opened.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (is_over()) {
        found_.complete = false;
        return;
      }
      ++found_.entries;
      look_at(folder, ::dirfd(opened.get()), entry->d_name);
    }
    const bool fits = !here_.has_folders && here_.bytes > 0 && here_.bytes <= limits_.folder_at_most;
    if (fits && found_.folders.size() < kMostFolders) found_.folders.push_back({folder.path, here_.bytes});
  }

  void look_at(const Folder& folder, int fd, const char* name) {
    struct stat status {};
    if (::fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_dev != device_) return;
    const std::string path = (folder.path == "/" ? "" : folder.path) + "/" + name;
    if (S_ISDIR(status.st_mode)) {
      here_.has_folders = true;
      if (std::string_view(name).starts_with(kScratchPrefix)) return;  // belongs to another run
      if (folder.depth < limits_.depth) {
        waiting_.push_back({path, folder.depth + 1});
      } else {
        found_.complete = false;
      }
      return;
    }
    const auto size = static_cast<Bytes>(status.st_size);
    if (S_ISREG(status.st_mode)) {
      found_.all_bytes += size;
      here_.bytes += size;
      ++found_.all_files;
    }
    if (!S_ISREG(status.st_mode) || size < limits_.at_least || size > limits_.at_most || !fio_filename(path))
      return;
    if (::faccessat(fd, name, R_OK, AT_EACCESS) != 0) return;
    if (static_cast<Bytes>(status.st_blocks) * 512 < size / 2) {
      ++found_.sparse;
      return;
    }
    if (limits_.sample) {
      sample({path, size});
    } else {
      keep({path, size});
    }
  }

  // Reservoir sampling: each file seen so far is kept with the same probability.
  void sample(DataFile file) {
    std::vector<DataFile>& files = found_.files;
    ++suitable_;
    if (files.size() < limits_.files) {
      files.push_back(std::move(file));
      std::swap(files.back(), files[random_() % files.size()]);
    } else if (const std::uint64_t place = random_() % suitable_; place < files.size()) {
      files[place] = std::move(file);
    }
  }

  // A heap with the smallest of the kept files on top.
  void keep(DataFile file) {
    std::vector<DataFile>& files = found_.files;
    if (files.size() == limits_.files) {
      if (!larger(file, files.front())) return;
      std::pop_heap(files.begin(), files.end(), larger);
      files.pop_back();
    }
    files.push_back(std::move(file));
    std::push_heap(files.begin(), files.end(), larger);
  }

  const WalkLimits& limits_;
  const std::chrono::steady_clock::time_point end_;
  dev_t device_ = 0;
  std::deque<Folder> waiting_;  // breadth first, to find a large file near the top before a limit ends the
                                // walk
  FoundFiles found_;
  struct {
    Bytes bytes = 0;
    bool has_folders = false;
  } here_;  // of the folder being read
  std::uint64_t suitable_ = 0;
  std::mt19937_64 random_{limits_.sample.value_or(0)};
};

}  // namespace

FoundFiles find_files(const std::string& folder, const WalkLimits& limits) {
  return Walk(limits).run(folder);
}

}  // namespace spark::bench
