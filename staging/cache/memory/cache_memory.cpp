#include "staging/cache/memory/cache_memory.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

// The manifest of a million files is read to its end before it is found to be damaged.
constexpr std::chrono::minutes kReadAgain{10};

// An empty list if the cache is not in use yet.
Result<std::vector<std::string>> keys_of(CacheFolder& folder) {
  const auto id = folder.id();
  if (!id) return id.take_error();
  if (id->empty()) return std::vector<std::string>();
  if (auto held = folder.hold(*id); !held) return held.take_error();
  return folder.keys();
}

// The copies of a dataset's folder.
Result<std::vector<Destination>> places_in(const CacheFolder& folder, const std::string& key) {
  const auto generations = folder.generations(key);
  if (!generations) return generations.take_error();
  std::vector<Destination> places;
  for (const std::uint64_t one : *generations) places.push_back({folder.data() / key, std::to_string(one)});
  return places;
}

}  // namespace

Result<> CacheMemory::find_copies() {
  CacheFolder folder(cache_);
  const auto keys = keys_of(folder);
  if (!keys) return keys.take_error();
  std::map<std::filesystem::path, CopyMemory> now;
  std::map<std::filesystem::path, SteadyTime> unreadable;
  for (const std::string& key : *keys) {
    const auto places = places_in(folder, key);
    if (!places) continue;  // it was evicted meanwhile
    for (const Destination& place : *places) {
      const auto failed = unreadable_.find(place.path());
      if (auto known = copies_.extract(place.path()); !known.empty()) {
        now.insert(std::move(known));
      } else if (failed != unreadable_.end() && clock_.steady() - failed->second < kReadAgain) {
        unreadable.insert(*failed);
      } else if (auto copy = CopyMemory::open(place)) {
        now.emplace(place.path(), std::move(*copy));
      } else if (copy.error().kind != Errc::NotFound) {  // that is one being published
        unreadable[place.path()] = clock_.steady();
      }
    }
  }
  copies_ = std::move(now);
  unreadable_ = std::move(unreadable);
  return {};
}

Result<> CacheMemory::look(bool frees) {
  if (auto found = find_copies(); !found) {
    copies_.clear();
    datasets_.clear();
    return found;
  }
  const auto begin = clock_.steady();
  std::chrono::nanoseconds freeing{0};
  std::map<std::string, DatasetMemory> now;
  std::set<CopyMemory::FileId> counted;
  for (auto& [path, copy] : copies_) {
    const std::string& name = copy.dataset();
    const auto look = copy.look({clock_, frees, [&] { return is_leased_(name); }, &counted});
    DatasetMemory& dataset = now[name];
    dataset.dataset = name;
    dataset.held += look.held;
    dataset.is_estimate = dataset.is_estimate || look.is_estimate;
    dataset.freed += look.freed;
    freeing += look.freeing;
  }
  for (auto& [name, dataset] : now)
    if (const auto before = datasets_.find(name); before != datasets_.end())
      dataset.freed += before->second.freed;
  datasets_ = std::move(now);
  cost_ = clock_.steady() - begin - freeing;
  return {};
}

std::vector<DatasetMemory> CacheMemory::datasets() const {
  std::vector<DatasetMemory> all;
  for (const auto& [name, dataset] : datasets_) all.push_back(dataset);
  return all;
}

Bytes CacheMemory::held() const {
  Bytes sum = 0;
  for (const auto& [name, dataset] : datasets_) sum += dataset.held;
  return sum;
}

Result<std::vector<DatasetMemory>> drop_from_memory(const std::filesystem::path& cache,
                                                    const std::vector<std::string>& datasets,
                                                    const Clock& clock, const StopFlag& stop) {
  CacheFolder folder(cache);
  const auto keys = keys_of(folder);
  if (!keys) return keys.take_error();
  std::vector<std::string> wanted;
  for (const std::string& dataset : datasets) {
    wanted.push_back(folder_name(dataset));
    if (std::ranges::find(*keys, wanted.back()) == keys->end())
      return fail(Errc::NotFound, "dataset " + printable(dataset) + " is not staged",
                  "`spark-stage ls` lists the staged datasets");
  }
  std::vector<DatasetMemory> dropped;
  std::set<CopyMemory::FileId> counted;
  Result<> all;
  // One that was deleted meanwhile has no memory.
  const auto note = [&](const Error& error) {
    if (error.kind != Errc::NotFound && all)
      all = fail_with(error, "freeing the memory of the copies, of which the others were freed");
  };
  for (const std::string& key : datasets.empty() ? *keys : wanted) {
    const auto places = places_in(folder, key);
    if (!places) note(places.error());
    DatasetMemory memory;
    for (const Destination& place : places.value_or(std::vector<Destination>())) {
      auto copy = CopyMemory::open(place);
      if (!copy) {
        note(copy.error());
        continue;
      }
      memory.dataset = copy->dataset();
      memory.freed += copy->drop(stop);
      const auto left = copy->look({.clock = clock, .counted = &counted});
      memory.held += left.held;
      memory.is_estimate = memory.is_estimate || left.is_estimate;
    }
    if (!memory.dataset.empty()) dropped.push_back(std::move(memory));
  }
  if (!all) return all.take_error();
  return dropped;
}

}  // namespace spark::staging
