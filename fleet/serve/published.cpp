#include "fleet/serve/published.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "fleet/adopted/offer_file.hpp"
#include "fleet/protocol/layout.hpp"
#include "fleet/protocol/set_id.hpp"
#include "staging/cache/catalog/damage.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "staging/leases/lease.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {
namespace {

// For another thread that reads a new manifest; less than kSilent.
constexpr std::chrono::milliseconds kLongestWait{1000};

std::array<std::int64_t, 3> file_at(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  return {static_cast<std::int64_t>(info.st_ino), info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

bool is_same(const PublishedCopies::Copy& one, const PublishedCopies::Copy& other) {
  return one.row.source.key == other.row.source.key && one.file == other.file;
}

// Fills in the set's names and its units. All stay empty if the manifest can't be read.
void name_set(PublishedCopies::Copy& copy, bool is_exchanged_folder) {
  auto manifest = staging::ManifestReader::open(copy.manifest);
  if (!manifest) return;
  const std::string& then = manifest->header().origin;
  const staging::SetOrigin origin{copy.row.source.key, is_of_nfs(then)       ? then
                                                       : is_exchanged_folder ? "folder " + copy.row.dataset
                                                                             : ""};
  SetNaming naming(origin), by_content({"", content_origin(copy.row.hash)});
  Layout layout;
  while (const auto entry = manifest->next()) {
    naming.add(*entry);
    by_content.add(*entry);
    if (staging::is_content(*entry)) layout.add(entry->size);
  }
  if (!manifest->error()) return;
  layout.finish();
  if (is_exchanged(origin)) copy.set = naming.id();
  copy.content_set = by_content.id();
  copy.units = layout.units();
}

}  // namespace

void PublishedCopies::look() {
  look_into_catalog();
  look_for_adopted();
  // Not a timed mutex: ThreadSanitizer of g++ 12 does not see it locked.
  std::unique_lock lock(mutex_);
  if (!named_.wait_for(lock, kLongestWait, [this] { return !is_naming_; })) return;
  is_naming_ = true;
  lock.unlock();
  struct Turn {
    PublishedCopies& its;
    ~Turn() {
      const std::scoped_lock ending(its.mutex_);
      its.is_naming_ = false;
      its.named_.notify_all();
    }
  };
  const Turn turn{*this};
  name_new();
}

std::string PublishedCopies::trouble() const {
  const std::scoped_lock lock(mutex_);
  return trouble_;
}

void PublishedCopies::look_into_catalog() {
  const std::scoped_lock looking(looking_);
  staging::CacheFolder folder(cache_);
  const auto id = folder.id();
  if (!id || !folder.hold(*id)) return;
  // Kept open: the last program that closes it deletes files beside it.
  if (!catalog_ || !catalog_->is_current()) {
    auto opened = staging::Catalog::open(state_dir_, staging::IfMissing::Fail);
    {
      const std::scoped_lock lock(mutex_);
      trouble_ = opened ? "" : opened.error().message();
    }
    if (!opened) return;
    catalog_ = std::move(*opened);
  }
  const auto cache_of_catalog = catalog_->cache_id();
  if (cache_of_catalog && *cache_of_catalog == *id) look_into(folder, *catalog_);
  if (!cache_of_catalog) catalog_.reset();
}

void PublishedCopies::look_into(const staging::CacheFolder& folder, staging::Catalog& catalog) {
  auto rows = catalog.generations();
  if (!rows) return;
  static_cast<void>(staging::DamageRecords(folder.data(), catalog).add_to(*rows));  // not known: not offered
  if (const auto leases = catalog.leases()) {
    const WallTime now = SystemClock().wall();
    is_leased_ = std::ranges::any_of(*leases, [&](const staging::Lease& lease) {
      return lease.is_staged() && !lease.is_soft && staging::is_live(lease, now);
    });
  }
  std::map<std::filesystem::path, Copy> there;
  for (const staging::GenerationRow& row : *rows) {
    if (row.state != staging::GenerationState::Ready || !row.is_sound()) continue;
    const staging::Destination place = folder.place(row.dataset, row.generation);
    Copy copy{place.path(), place.manifest(), "", "", 0, "", row, file_at(place.manifest()), {}};
    if (!row.source.key.empty()) copy.walk = SetNaming({row.source.key, ""}).id();
    {
      const std::scoped_lock lock(mutex_);
      const auto known = copies_.find(copy.manifest);
      if (known != copies_.end() && is_same(known->second, copy)) {
        copy.set = known->second.set;
        copy.content_set = known->second.content_set;
        copy.units = known->second.units;
      }
    }
    there.emplace(copy.manifest, std::move(copy));
  }
  const std::scoped_lock lock(mutex_);
  std::erase_if(copies_, [](const auto& one) { return one.second.adopted == nullptr; });
  copies_.merge(there);
}

// Whether their files are still as they were is found when they are read; see offer_of_folder.
void PublishedCopies::look_for_adopted() {
  for (const auto& folder : adopted_) {
    const auto manifest = offer_file(state_dir_, folder->dataset);
    const auto file = file_at(manifest);
    {
      const std::scoped_lock lock(mutex_);
      const auto known = copies_.find(manifest);
      if (known != copies_.end() && known->second.file == file) continue;
      if (known != copies_.end()) copies_.erase(known);
    }
    const auto offer = file[0] == 0 ? std::nullopt : read_offer(manifest, definition_of(*folder));
    if (!offer) continue;
    Copy copy{manifest, manifest, "", "", 0, "", {}, file, folder};
    copy.row.dataset = folder->dataset;
    copy.row.hash = offer->summary.hash;
    copy.row.bytes = offer->summary.bytes;
    copy.row.files = offer->summary.files;
    copy.row.model = offer->model;
    const std::scoped_lock lock(mutex_);
    copies_.emplace(manifest, std::move(copy));
  }
}

// Without the lock while it reads: a host that has no answer for that long counts as silent.
void PublishedCopies::name_new() {
  std::set<std::filesystem::path> tried;
  for (;;) {
    Copy copy;
    {
      const std::scoped_lock lock(mutex_);
      const auto next = std::ranges::find_if(copies_, [&](const auto& one) {
        return one.second.content_set.empty() && !tried.contains(one.first);
      });
      if (next == copies_.end()) return;
      copy = next->second;
    }
    tried.insert(copy.manifest);
    name_set(copy, copy.adopted == nullptr && folders_.contains(copy.row.dataset));
    const std::scoped_lock lock(mutex_);
    const auto now = copies_.find(copy.manifest);
    if (now == copies_.end() || !is_same(now->second, copy)) continue;
    now->second.set = copy.set;
    now->second.content_set = copy.content_set;
    now->second.units = copy.units;
  }
}

template <class Is>
std::optional<PublishedCopies::Copy> PublishedCopies::find_if(const Is& is) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [manifest, copy] : copies_) {
    if (is(copy)) return copy;
  }
  return std::nullopt;
}

std::optional<PublishedCopies::Copy> PublishedCopies::find(const std::string& set) const {
  return find_if(
      [&](const Copy& copy) { return !set.empty() && (copy.set == set || copy.content_set == set); });
}

std::optional<PublishedCopies::Copy> PublishedCopies::find_walk(const std::string& walk) const {
  return find_if([&](const Copy& copy) { return !walk.empty() && copy.walk == walk; });
}

std::optional<PublishedCopies::Copy> PublishedCopies::find_content(const std::string& hash) const {
  return find_if([&](const Copy& copy) { return !copy.content_set.empty() && copy.row.hash == hash; });
}

json::array PublishedCopies::list() const {
  std::map<std::string, const Copy*> newest;
  const std::scoped_lock lock(mutex_);
  for (const auto& [manifest, copy] : copies_) {
    const Copy*& known = newest[copy.row.dataset];
    const bool is_newer =
        known == nullptr || copy.adopted || (!known->adopted && known->row.generation < copy.row.generation);
    if (is_newer) known = &copy;
  }
  json::array all;
  for (const auto& [name, copy] : newest) {
    const staging::GenerationRow& row = copy->row;
    json::object one{{"name", printable(name)},
                     {"generation", row.generation},
                     {"hash", row.hash},
                     {"bytes", row.bytes},
                     {"files", row.files}};
    if (!row.model.empty()) one["model"] = row.model;
    all.push_back(std::move(one));
  }
  for (const auto& folder : adopted_) {
    if (newest.contains(folder->dataset)) continue;
    json::object one{{"name", printable(folder->dataset)}, {"withheld", true}};
    if (folder->model) one["model_name"] = folder->model->name;
    all.push_back(std::move(one));
  }
  return all;
}

json::array PublishedCopies::offered() const {
  json::array all;
  const std::scoped_lock lock(mutex_);
  for (const auto& [manifest, copy] : copies_) {
    // A reader may have found a changed file since the last look().
    if (!copy.adopted || copy.content_set.empty() || file_at(manifest) != copy.file) continue;
    const staging::GenerationRow& row = copy.row;
    all.push_back(json::object{
        {"name", printable(row.dataset)}, {"bytes", row.bytes}, {"files", row.files}, {"hash", row.hash}});
  }
  return all;
}

}  // namespace spark::fleet
