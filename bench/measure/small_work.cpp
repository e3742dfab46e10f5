#include "bench/measure/small_work.hpp"

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/text.hpp"
#include "bench/files/existing_files.hpp"
#include "bench/fio/process.hpp"

namespace spark::bench {
namespace {

constexpr Duration kSampleTime{25'000};
constexpr std::size_t kMostSampled = 50'000;
constexpr std::size_t kFewestFiles = 16;

void choose_window(SmallWork& work, Bytes at_most) {
  Bytes bytes = 0;
  const std::size_t most = std::min(work.files.size(), kMostSmallFiles);
  while (work.window < most && (work.window < kFewestFiles || bytes < at_most)) {
    bytes += work.files[work.window].bytes;
    work.sizes.push_back(work.files[work.window++].bytes);
  }
}

// Own Fisher-Yates, as in plan_cells().
void shuffle(std::vector<DataFile>& folders, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t left = folders.size(); left > 1; --left)
    std::swap(folders[left - 1], folders[random() % left]);
}

}  // namespace

std::vector<std::string> CopySample::of_round(unsigned round, Bytes at_most) const {
  std::vector<std::string> chosen;
  std::size_t next = 0;
  for (unsigned earlier = 0; earlier <= round && !folders.empty(); ++earlier) {
    chosen.clear();
    Bytes bytes = 0;
    do {
      const std::filesystem::path path = folders[next].path;
      if (path == source) return {};
      chosen.push_back(path.lexically_relative(source).native());
      bytes += folders[next].bytes;
      next = (next + 1) % folders.size();
    } while (chosen.size() < folders.size() && bytes + folders[next].bytes <= at_most);
  }
  return chosen;
}

bool SmallWork::is_in(const std::string& folder_of_path) const {
  if (folder.empty()) return false;
  return folder_of_path == "/" || folder == folder_of_path || folder.starts_with(folder_of_path + "/");
}

SmallWork made_up_work(std::uint64_t count, Bytes size) {
  SmallWork work;
  work.sizes.assign(count, size);
  work.window = count;
  return work;
}

Result<SmallWork> sample_work(const std::string& folder, const BenchOptions& options, std::uint64_t seed,
                              const StopFlag& stop) {
  WalkLimits limits;
  limits.files = kMostSampled;
  limits.entries = 200'000;
  limits.at_least = 1;
  limits.at_most = kLargestSmallFile;
  limits.sample = seed;
  limits.folder_at_most = layout_size(options) / kLargeFiles;
  const auto apart = on_path("looking at the files of " + printable(folder), kSampleTime, &stop);
  auto found = run_apart(apart, [&]() -> Result<FoundFiles> { return find_files(folder, limits); });
  if (!found) return found.take_error();
  if (found->files.empty()) return fail(Errc::NotFound, printable(folder) + " holds no file of up to 1 MiB");
  SmallWork work;
  work.folder = folder;
  work.files = std::move(found->files);
  shuffle(found->folders, seed);
  if (!found->folders.empty()) work.copy = {folder, std::move(found->folders)};
  choose_window(work, small_bytes_at_most(options));
  return work;
}

void start_at(SmallWork& work, const HostPart& part) {
  const auto rotate = [&](std::vector<DataFile>& files) {
    const auto first = static_cast<std::ptrdiff_t>(part.offset_in(files.size()));
    std::rotate(files.begin(), files.begin() + first, files.end());
  };
  rotate(work.files);
  rotate(work.copy.folders);
}

}  // namespace spark::bench
