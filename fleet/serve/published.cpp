#include "fleet/serve/published.hpp"

#include "base/text.hpp"
#include "fleet/protocol/set_id.hpp"
#include "staging/cache/cache_folder.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {
namespace {

std::optional<PublishedCopies::Copy> read_copy(const staging::Destination& place, std::uint64_t generation) {
  auto manifest = staging::ManifestReader::open(place.manifest());
  if (!manifest || manifest->header().is_doubtful) return std::nullopt;
  PublishedCopies::Copy copy;
  copy.path = place.path();
  copy.manifest = place.manifest();
  copy.dataset = manifest->header().dataset;
  copy.generation = generation;
  SetNaming exact(SetKind::Exact), plain(SetKind::Plain);
  staging::Summing sum(staging::kSmallestBlock);
  while (const auto entry = manifest->next()) {
    exact.add(*entry);
    plain.add(*entry);
    sum.add(*entry);
  }
  if (!manifest->error()) return std::nullopt;
  const staging::Summary summary = sum.done();
  copy.hash = summary.hash;
  copy.bytes = summary.bytes;
  copy.files = summary.files;
  copy.exact = exact.id();
  copy.plain = plain.id();
  return copy;
}

}  // namespace

void PublishedCopies::look() {
  const std::scoped_lock looking(looking_);
  staging::CacheFolder folder(cache_);
  const auto id = folder.id();
  if (!id || !folder.hold(*id)) return;
  const auto keys = folder.keys();
  if (!keys) return;
  std::set<std::filesystem::path> there;
  for (const std::string& key : *keys) {
    const auto generations = folder.generations(key);
    for (const std::uint64_t generation : generations.value_or(std::vector<std::uint64_t>())) {
      const staging::Destination place{folder.data() / key, std::to_string(generation)};
      there.insert(place.manifest());
      {
        const std::scoped_lock lock(mutex_);
        if (copies_.contains(place.manifest())) continue;
      }
      auto copy = read_copy(place, generation);
      const std::scoped_lock lock(mutex_);
      copies_[place.manifest()] = std::move(copy);
    }
  }
  const std::scoped_lock lock(mutex_);
  std::erase_if(copies_, [&](const auto& one) { return !there.contains(one.first); });
}

std::optional<PublishedCopies::Copy> PublishedCopies::find(const std::string& set) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [manifest, copy] : copies_) {
    if (copy && (copy->exact == set || copy->plain == set)) return copy;
  }
  return std::nullopt;
}

json::array PublishedCopies::list() const {
  std::map<std::string, const Copy*> newest;
  const std::scoped_lock lock(mutex_);
  for (const auto& [manifest, copy] : copies_) {
    if (!copy) continue;
    const Copy*& known = newest[copy->dataset];
    if (known == nullptr || known->generation < copy->generation) known = &*copy;
  }
  json::array all;
  for (const auto& [name, copy] : newest)
    all.push_back(json::object{{"name", printable(name)},
                               {"generation", copy->generation},
                               {"hash", copy->hash},
                               {"bytes", copy->bytes},
                               {"files", copy->files}});
  return all;
}

}  // namespace spark::fleet
