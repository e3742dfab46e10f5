#include "staging/cache/memory/copy_memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <thread>

#include "staging/files/io/page_cache.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {
namespace {

// An eviction refuses a copy with an open file, so none is open for long.
constexpr Bytes kStep = kGiB;
// Less of it in small files is not worth a look at each of them.
constexpr Bytes kLeastToSweep = 32 * kMiB;
constexpr std::chrono::seconds kBetweenSweeps{60};
constexpr std::chrono::milliseconds kTurn{20};  // of work; the CPU is free for as long after it

enum class Open { Stays, GoesToo };

UniqueFd open_file(const Tree& tree, std::string_view path) {
  return open_beneath(tree, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
}

// Returns the bytes that were freed.
Bytes free_file(const Tree& tree, std::string_view path, Bytes size, Open open) {
  UniqueFd fd = open_file(tree, path);
  const Bytes before = fd ? cached_bytes(fd.get(), size) : 0;
  if (before == 0 || (open == Open::Stays && is_open_elsewhere(fd.get()).value_or(true))) return 0;
  for (Bytes at = 0; fd && at < size; at += kStep) {
    drop_pages(fd.get(), at, kStep);
    if (at + kStep < size) fd = open_file(tree, path);
  }
  const Bytes after = fd ? cached_bytes(fd.get(), size) : 0;
  return before - std::min(before, after);
}

// Calls `take` for each file with content.
Result<> for_each_file(const Destination& place,
                       const std::function<bool(const Entry&, ManifestReader&)>& take) {
  auto manifest = ManifestReader::open(place.manifest());
  if (!manifest) return manifest.take_error();
  while (const auto entry = manifest->next())
    if (is_content_of_copy(*entry) && entry->size > 0 && !take(*entry, *manifest)) return {};
  // The manifest of a million files is a large file, too.
  const auto folder = open_tree(place.folder);
  const UniqueFd fd = folder ? open_file(*folder, place.manifest().filename().native()) : UniqueFd();
  if (fd) drop_pages(fd.get(), 0, 0);
  return manifest->error();
}

class Turns {
 public:
  explicit Turns(const Clock& clock) : clock_(clock) {}
  void next() {
    if (clock_.steady() - begin_ < kTurn) return;
    std::this_thread::sleep_for(kTurn);
    begin_ = clock_.steady();
  }

 private:
  const Clock& clock_;
  SteadyTime begin_ = clock_.steady();
};

}  // namespace

Result<CopyMemory> CopyMemory::open(const Destination& place) {
  CopyMemory copy;
  copy.place_ = place;
  const auto is_larger = [](const File& a, const File& b) { return a.size > b.size; };
  std::minstd_rand random(1);
  std::size_t rest = 0;
  const auto add_to_rest = [&](File file) {
    copy.rest_ += file.size;
    copy.largest_rest_ = std::max(copy.largest_rest_, file.size);
    ++rest;
    // Each of them is in the sample with the same probability, whatever their number.
    const std::size_t at = rest <= kSampledFiles ? rest - 1 : random() % rest;
    if (at == copy.sample_.size())
      copy.sample_.push_back(std::move(file));
    else if (at < copy.sample_.size())
      copy.sample_[at] = std::move(file);
  };
  auto read = for_each_file(place, [&](const Entry& entry, const ManifestReader& manifest) {
    copy.dataset_ = manifest.header().dataset;
    auto& known = copy.known_;
    known.push_back({entry.path, entry.size});
    std::ranges::push_heap(known, is_larger);
    if (known.size() <= kMostKnownFiles) return true;
    std::ranges::pop_heap(known, is_larger);
    add_to_rest(std::move(known.back()));
    known.pop_back();
    return true;
  });
  if (!read) return read.take_error();
  for (const File& file : copy.sample_) copy.sampled_ += file.size;
  return copy;
}

CopyMemory::Look CopyMemory::look(const Request& request) {
  Look look;
  const auto tree = open_tree(place_.path());
  if (!tree) return look;
  look_at_known(*tree, request, look);
  if (!sample_.empty()) look_at_rest(*tree, request, look);
  return look;
}

void CopyMemory::look_at_known(const Tree& tree, const Request& request, Look& look) {
  for (File& file : known_) {
    UniqueFd fd = open_file(tree, file.path);
    const Bytes held = fd ? cached_bytes(fd.get(), file.size) : 0;
    const bool is_quiet = held <= std::exchange(file.held, held);
    if (held == 0) continue;
    struct stat info {};
    const bool is_known = ::fstat(fd.get(), &info) == 0;
    fd.reset();
    if (!is_known ||
        (request.counted != nullptr && !request.counted->emplace(info.st_dev, info.st_ino).second))
      continue;
    look.held += held;
    if (!request.frees || !is_quiet) continue;
    const SteadyTime begin = request.clock.steady();
    const Bytes freed = std::min(held, free_file(tree, file.path, file.size, Open::Stays));
    look.freeing += request.clock.steady() - begin;
    look.freed += freed;
    look.held -= freed;
    file.held -= freed;
  }
}

void CopyMemory::look_at_rest(const Tree& tree, const Request& request, Look& look) {
  Bytes found = 0;
  for (const File& file : sample_) {
    const UniqueFd fd = open_file(tree, file.path);
    if (fd) found += cached_bytes(fd.get(), file.size);
  }
  const auto share = static_cast<double>(found) / static_cast<double>(sampled_);
  auto held = static_cast<Bytes>(share * static_cast<double>(rest_));
  const bool is_quiet = held <= std::exchange(rest_held_, held);
  const SteadyTime begin = request.clock.steady();
  const bool was_swept = swept_ && begin - *swept_ < kBetweenSweeps;
  if (request.frees && is_quiet && held >= kLeastToSweep && !was_swept && !request.keeps_rest()) {
    Turns turns(request.clock);
    Bytes freed = 0;
    // A manifest that can't be read any more is that of a copy that is being deleted.
    static_cast<void>(for_each_file(place_, [&](const Entry& entry, const ManifestReader&) {
      turns.next();
      if (entry.size <= largest_rest_) freed += free_file(tree, entry.path, entry.size, Open::Stays);
      return true;
    }));
    swept_ = request.clock.steady();
    look.freeing += *swept_ - begin;
    look.freed += freed;
    held -= std::min(held, freed);
    rest_held_ = held;
  }
  look.held += held;
  look.is_estimate = held > 0;
}

Bytes CopyMemory::drop(const StopFlag& stop) {
  const auto tree = open_tree(place_.path());
  if (!tree) return 0;
  Bytes freed = 0;
  const auto take = [&](std::string_view path, Bytes size) {
    if (!stop) freed += free_file(*tree, path, size, Open::GoesToo);
  };
  for (const File& file : known_) take(file.path, file.size);
  if (sample_.empty()) return freed;
  static_cast<void>(for_each_file(place_, [&](const Entry& entry, const ManifestReader&) {
    if (entry.size <= largest_rest_) take(entry.path, entry.size);
    return !stop;
  }));
  return freed;
}

}  // namespace spark::staging
