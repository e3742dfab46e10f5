#include "staging/view/copy_viewer.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "staging/copy/resume.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/manifest/source_identity.hpp"
#include "staging/view/view_tree.hpp"

namespace spark::staging {
namespace {

// Of all that a reader of the view sees. Times of folders change with temporary files in them.
void add(Hasher& hasher, const Entry& entry) {
  for (const std::string_view text : {entry.path.view(), entry.target.view(), entry.link_to.view()}) {
    hasher.add_number(text.size());
    hasher.add(text);
  }
  for (const std::uint64_t number : {static_cast<std::uint64_t>(entry.type), std::uint64_t{entry.mode},
                                     std::uint64_t{entry.uid}, std::uint64_t{entry.gid}})
    hasher.add_number(number);
  if (entry.type == EntryType::File) add(hasher, identity_of(entry));
}

std::string why_failed(const Entry& entry) {
  return printable(entry.path.view()) + ": it has changed or was deleted since the view began, or has an ACL";
}

bool is_of_set(const std::filesystem::path& manifest, const Digest& set) {
  auto entries = ManifestReader::open(manifest);
  if (!entries) return false;
  Hasher hasher;
  while (const auto entry = entries->next()) add(hasher, *entry);
  return entries->error() && hasher.digest() == set;
}

}  // namespace

CopyViewer::CopyViewer(ViewPlace place, std::string dataset, std::filesystem::path copy,
                       std::function<Result<>()> is_still_so, ViewReports reports)
    : place_(std::move(place)),
      dataset_(std::move(dataset)),
      copy_(std::move(copy)),
      reports_(std::move(reports)),
      confirmations_(std::move(is_still_so)) {
  const auto earlier = ViewMap::open(place_);
  for (std::uint64_t unit = 0; earlier && unit < (*earlier)->units(); ++unit)
    were_here_.push_back((*earlier)->unit(unit) == UnitState::Here);
}

bool CopyViewer::is_begun(const Digest& set, std::uint64_t units) const {
  const auto map = ViewMap::open(place_);
  return map && (*map)->set() == set && (*map)->units() == units && !(*map)->has_failed() &&
         !(*map)->is_published();
}

bool CopyViewer::begin(const Entries& entries, bool has_source, const std::string& why_not) {
  if (!why_not.empty()) return has_none({Errc::Unsupported, why_not, ""});
  if (entries.front().type != EntryType::Folder) return false;  // staged first
  UnitNumbers numbers;
  first_units_.clear();
  Hasher hasher;
  Summing summing(kSmallestBlock);
  for (const Entry& entry : entries) {
    summing.add(entry);
    first_units_.push_back(numbers.add(entry));
    add(hasher, entry);
  }
  first_units_.push_back(numbers.count());
  entries_ = &entries;
  const Digest set = hasher.digest();
  has_source_ = has_source;
  if (!has_source && !is_begun(set, numbers.count())) return false;
  ::mkdir(place_.folder.c_str(), 0700);  // names of files may be none of others' business
  ManifestHeader header;
  header.dataset = dataset_;
  auto map = ViewMap::make(place_, set, numbers.count(), copy_.native());
  const bool has_changed = !map && map.error().kind == Errc::Mismatch;
  if (has_changed && reports_.failed) reports_.failed(map.error().what, true);
  if (has_changed) return false;
  std::error_code unknown;
  if (map && !std::filesystem::exists(place_.entries(), unknown))
    if (const auto written = write_entries(place_.entries(), header, entries); !written) {
      map = fail(written.error());
      ViewMap::remove(place_);  // it may take memory, and no process serves it
    }
  if (!map && map.error().kind == Errc::Refused) return false;  // an earlier attempt has published its copy
  if (!map) return has_none(map.error());
  const auto before = std::exchange(map_, std::move(*map));  // until its confirmations have ended
  // A device that is away may not answer for long: what peers send waits for the publication.
  confirmations_.begin(*map_, has_source);
  const Summary sum = summing.done();
  if (reports_.begun) reports_.begun(sum.bytes, sum.files);
  report_earlier();
  return true;
}

// The daemon of that attempt may have ended.
void CopyViewer::report_earlier() const {
  if (!reports_.had_failed) return;
  for (std::size_t i = 0; i < entries_->size(); ++i) {
    const bool has_units = first_units_[i] < first_units_[i + 1];
    if (!has_units || map_->unit(first_units_[i]) != UnitState::Failed) continue;
    return reports_.had_failed(why_failed((*entries_)[i]));
  }
}

bool CopyViewer::has_none(Error why) {
  error_ = std::move(why);
  if (reports_.none) reports_.none(error_->message());
  return false;
}

UnitRange CopyViewer::units_of(const Entry& entry) const {
  const std::size_t index = index_of(*entries_, entry.path);
  if (index == entries_->size()) return {0, 0};
  return {first_units_[index], first_units_[index + 1] - first_units_[index]};
}

// In the map; none if the file has other units now.
UnitRange CopyViewer::part_of(const Entry& entry, const UnitRange& units) const {
  const UnitRange all = units_of(entry);
  return units.first + units.count <= all.count ? UnitRange{all.first + units.first, units.count}
                                                : UnitRange{0, 0};
}

void CopyViewer::arrived(const Entry& entry, const UnitRange& units) {
  if (map_) confirmations_.show(part_of(entry, units));
}

// Without a source no check is possible now, and none is needed for what readers have had before.
void CopyViewer::kept(const Entry& entry, const UnitRange& units) {
  if (has_source_) return arrived(entry, units);
  const UnitRange part = map_ ? part_of(entry, units) : UnitRange{0, 0};
  if (part.first + part.count > were_here_.size()) return;
  const auto begin = were_here_.begin() + static_cast<std::ptrdiff_t>(part.first);
  const auto end = begin + static_cast<std::ptrdiff_t>(part.count);
  for (auto at = std::find(begin, end, true); at != end;) {
    const auto next = std::find(at, end, false);
    map_->set_here(
        {static_cast<std::uint64_t>(at - were_here_.begin()), static_cast<std::uint64_t>(next - at)});
    at = std::find(next, end, true);
  }
}

void CopyViewer::withdraw(const Entry& entry, bool has_changed) {
  if (!map_) return;
  const UnitRange all = units_of(entry);
  const bool has_failed = all.count > 0 && map_->unit(all.first) == UnitState::Failed;
  confirmations_.withdraw(all, has_changed || has_failed ? UnitState::Failed : UnitState::Missing);
  if (has_changed && !has_failed && reports_.failed) reports_.failed(why_failed(entry), false);
}

// An entry without content has the number of the next unit, so the last one with this number has it.
std::optional<WantedOfFile> CopyViewer::take_wanted(bool is_small) {
  const auto unit = map_ ? map_->take_wanted(is_small) : std::nullopt;
  if (!unit) return std::nullopt;
  const auto at = std::ranges::upper_bound(first_units_, *unit) - first_units_.begin() - 1;
  const auto index = static_cast<std::size_t>(at);
  return WantedOfFile{&(*entries_)[index], *unit - first_units_[index]};
}

// Without a map of this run: an earlier one may have been killed just after it had published the copy, or
// before it had marked all of it.
void CopyViewer::published(const std::filesystem::path& copy, const std::filesystem::path& manifest) {
  if (!map_) {
    auto earlier = ViewMap::open(place_);
    if (!earlier) return;
    if (!(*earlier)->is_published() && !is_of_set(manifest, (*earlier)->set()))
      return (*earlier)->set_failed(kHasChanged);
    map_ = std::move(*earlier);
  }
  if (!map_->is_published()) map_->set_published(copy.native());
  map_->set_here({0, map_->units()});
}

}  // namespace spark::staging
