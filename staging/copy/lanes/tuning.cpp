#include "staging/copy/lanes/tuning.hpp"

#include <sys/statfs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/rounding.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::staging {
namespace {

// Of a trial: what may have begun under the setting before, then what counts, for so long at least.
constexpr Bytes kSkip = 96 * kMiB, kCount = 384 * kMiB;
constexpr auto kShortest = std::chrono::milliseconds(150);
constexpr double kClearly = 1.05;
constexpr std::size_t kMostPairs = 200;

std::string id_of(int fd) {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) return {};
  std::uint64_t id = 0;
  static_assert(sizeof info.f_fsid == sizeof id);
  std::memcpy(&id, &info.f_fsid, sizeof id);
  if (id == 0) return {};
  return to_hex({static_cast<std::uint64_t>(info.f_type), id});
}

}  // namespace

Shape shape_of(const CopyOptions& options) {
  Shape shape;
  const unsigned cpus = std::max(1U, std::thread::hardware_concurrency());
  // One thread hashes faster than most drives read; the kernel's part of the work wants CPUs too.
  shape.threads = std::clamp(cpus / 2, 1U, 4U);
  if (options.threads > 0) shape.threads = std::min(options.threads, 4U);
  if (options.depth > 0) shape.lanes = std::max(1U, options.depth / shape.threads);
  if (options.threads == 1 && options.depth == 0) shape.lanes = 1;
  if (options.chunk > 0) shape.chunk = usable_chunk(options.chunk);
  return shape;
}

unsigned small_file_threads(const CopyOptions& options) {
  if (options.threads > 0) return options.threads;
  // They wait for the drive and for the file system more than they work.
  return std::clamp(8 * std::thread::hardware_concurrency(), 16U, 32U);
}

Bytes usable_chunk(Bytes wanted) {
  return std::clamp<Bytes>(round_up(wanted, kLargestAlignment), kLargestAlignment, kHashPiece);
}

std::vector<Tuning::Setting> settings_to_try(const Shape& shape) {
  std::vector<Tuning::Setting> settings = {{shape.lanes, shape.chunk}};
  for (const Tuning::Setting& other :
       {Tuning::Setting{8, 2 * kMiB}, {4, 2 * kMiB}, {8, 1 * kMiB}, {12, 1 * kMiB}}) {
    if (other != settings.front()) settings.push_back(other);
  }
  return settings;
}

Tuning::Tuning(std::vector<Setting> settings)
    : lanes_(settings.front().lanes), chunk_(settings.front().chunk), is_trying_(settings.size() > 1) {
  for (const Setting& setting : settings) trials_.push_back({setting, 0});
}

void Tuning::use(const Setting& setting) {
  lanes_ = setting.lanes;
  chunk_ = setting.chunk;
}

void Tuning::moved(Bytes bytes, SteadyTime now) {
  if (!is_trying_) return;
  const std::scoped_lock lock(mutex_);
  if (skipped_ < kSkip) {
    skipped_ += bytes;
    counting_since_ = now;
    return;
  }
  counted_ += bytes;
  if (is_trying_ && counted_ >= kCount && now - counting_since_ >= kShortest) end_trial(now);
}

void Tuning::end_trial(SteadyTime now) {
  const double seconds = std::chrono::duration<double>(now - counting_since_).count();
  trials_[current_].bytes_per_second = static_cast<double>(counted_) / seconds;
  skipped_ = counted_ = 0;
  if (++current_ < trials_.size()) return use(trials_[current_].setting);
  const auto best = std::ranges::max_element(trials_, {}, &Trial::bytes_per_second);
  if (best->bytes_per_second > kClearly * trials_.front().bytes_per_second)
    std::iter_swap(trials_.begin(), best);
  use(trials_.front().setting);
  is_trying_ = false;
}

std::optional<Tuning::Setting> Tuning::found() const {
  const std::scoped_lock lock(mutex_);
  if (trials_.size() == 1 || current_ < trials_.size()) return std::nullopt;
  return trials_.front().setting;
}

Tuning::Setting Tuning::largest() const {
  Setting largest;
  for (const Trial& trial : trials_) {
    largest.lanes = std::max(largest.lanes, trial.setting.lanes);
    largest.chunk = std::max(largest.chunk, trial.setting.chunk);
  }
  return largest;
}

std::optional<Tuning::Setting> TuningFile::find(const std::string& pair) const {
  const auto text = read_file(path_);
  const auto all = text ? parse_json_object(*text) : fail(Errc::NotFound, "");
  const json::value* known = all ? all->if_contains(pair) : nullptr;
  if (known == nullptr || !known->is_object()) return std::nullopt;
  const auto lanes = get_int(known->get_object(), "lanes"), chunk = get_int(known->get_object(), "chunk");
  if (!lanes || !chunk || *lanes < 1 || *lanes > 64 || *chunk < 1) return std::nullopt;
  return Tuning::Setting{static_cast<unsigned>(*lanes), usable_chunk(static_cast<Bytes>(*chunk))};
}

void TuningFile::remember(const std::string& pair, const Tuning::Setting& setting) const {
  if (pair.empty()) return;
  const auto text = read_file(path_);
  auto all = text ? parse_json_object(*text) : fail(Errc::NotFound, "");
  json::object known = all && all->size() < kMostPairs ? std::move(*all) : json::object();
  known[pair] = json::object({{"lanes", setting.lanes}, {"chunk", setting.chunk}});
  // It saves the next run a second: that it can't be written is no failure of this one.
  [[maybe_unused]] const auto written = write_file_atomically(path_, json::serialize(known) + "\n", 0600);
}

std::string pair_of(int source, int destination) {
  const std::string from = id_of(source), to = id_of(destination);
  return from.empty() || to.empty() ? "" : from + "-" + to;
}

}  // namespace spark::staging
