#include "bench/measure/small_work.hpp"

#include <algorithm>
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

json::array to_json(const std::vector<DataFile>& files) {
  json::array pairs;
  for (const DataFile& file : files) pairs.push_back(json::array{file.path, file.bytes});
  return pairs;
}

std::vector<DataFile> files_from(const json::object& answer, const char* name) {
  std::vector<DataFile> files;
  for (const json::value& file : *get_array(answer, name)) {
    const json::array& pair = file.as_array();
    files.push_back({std::string(pair[0].as_string()), pair[1].to_number<Bytes>()});
  }
  return files;
}

CopySample copy_sample(const std::string& source, std::vector<DataFile> folders) {
  return folders.empty() ? CopySample() : CopySample{source, std::move(folders)};
}

// Own Fisher-Yates, as in plan_cells().
void shuffle(std::vector<DataFile>& folders, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t left = folders.size(); left > 1; --left)
    std::swap(folders[left - 1], folders[random() % left]);
}

}  // namespace

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

SmallWork sample_work(const std::string& folder, Bytes at_most, Bytes copy_at_most, std::uint64_t seed) {
  WalkLimits limits;
  limits.files = kMostSampled;
  limits.entries = 200'000;
  limits.at_least = 1;
  limits.at_most = kLargestSmallFile;
  limits.sample = seed;
  limits.folder_at_most = copy_at_most;
  FoundFiles found = find_files(folder, limits);
  SmallWork work;
  work.folder = folder;
  work.files = std::move(found.files);
  shuffle(found.folders, seed);
  work.copy = copy_sample(folder, std::move(found.folders));
  choose_window(work, at_most);
  return work;
}

Result<SmallWork> sample_work_apart(const std::string& folder, const BenchOptions& options,
                                    std::uint64_t seed, const StopFlag& stop) {
  const Bytes at_most = small_bytes_at_most(options);
  const ApartOptions apart{"looking at the files of " + printable(folder), kSampleTime, &stop};
  const auto answer = run_apart(apart, [&]() -> Result<json::value> {
    const SmallWork sampled = sample_work(folder, at_most, layout_size(options) / kLargeFiles, seed);
    return json::object{{"files", to_json(sampled.files)}, {"folders", to_json(sampled.copy.folders)}};
  });
  if (!answer) return answer.take_error();
  SmallWork work;
  work.folder = folder;
  work.files = files_from(answer->as_object(), "files");
  work.copy = copy_sample(folder, files_from(answer->as_object(), "folders"));
  choose_window(work, at_most);
  if (work.files.empty()) return fail(Errc::NotFound, printable(folder) + " holds no file of up to 1 MiB");
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
