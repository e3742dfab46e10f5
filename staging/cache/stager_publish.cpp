// The last steps of a staging: checks a model, publishes the copy, holds it for the request, and removes the
// generations that it replaces.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "staging/cache/inventory.hpp"
#include "staging/cache/stager.hpp"
#include "staging/copy/verify/model_check.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

// Estimated time to stage all of it; 0 if this run copied too little to tell.
double whole_seconds(Bytes bytes, Bytes not_copied, double seconds) {
  const Bytes copied = bytes - std::min(bytes, not_copied);
  if (copied == 0 || copied < bytes / 10) return 0;
  return seconds * static_cast<double>(bytes) / static_cast<double>(copied);
}

}  // namespace

// The next attempt reads everything again: the bytes may have been damaged on their way.
Result<> Stager::check_model_in(const Tree& source, PartialArea& area, const CopyOptions& options,
                                const GenerationRow* earlier) {
  const CopyOfModel copy{area.data(), area.manifest(), source.root()};
  std::filesystem::path before;
  if (earlier != nullptr) before = store_.folder().place(earlier->dataset, earlier->generation).manifest();
  const auto pin = check_model(copy, before, *model_, options, monitor_, stop_);
  if (pin) model_->pin = *pin;
  if (pin) return check_pin(source, *model_, *pin);
  if (pin.error().kind == Errc::Mismatch) {
    if (auto cleared = area.clear(); !cleared) return cleared;
  }
  return fail(pin.error());
}

Result<std::uint64_t> Stager::publish(const Sealed& sealed, PartialArea& area, Bytes not_copied,
                                      CacheStore::Origin origin) {
  const std::string& dataset = sealed.header.dataset;
  auto generation = unused_generation(store_, dataset);
  if (!generation) return generation;
  const Destination place = store_.folder().place(dataset, *generation);
  if (::mkdir(place.folder.c_str(), kEntered) != 0 && errno != EEXIST) {
    return fail_errno(errno, "making folder " + printable(place.folder.native()));
  }
  if (auto flushed = flush_folder(store_.folder().data()); !flushed) {
    return flushed.take_error();
  }
  if (auto sound = store_.damage().vouch_for(dataset, *generation); !sound) {
    auto cleared = sound.error().kind == Errc::Mismatch ? area.clear() : Result<>();
    return cleared ? sound.take_error() : cleared.take_error();
  }
  if (auto published = staging::publish(place, area, sealed.root, store_.step()); !published) {
    return published.take_error();
  }
  if (auto go_on = after(store_.step(), "published"); !go_on) {
    return go_on.take_error();
  }
  origin.stage_seconds = whole_seconds(sealed.summary.bytes, not_copied, monitor_.seconds());
  const Bytes peers = monitor_.counters.bytes_from_peers;
  origin.from = BytesFrom{over(sealed.summary.bytes, not_copied + peers), peers};
  if (auto entered = store_.enter(sealed.header, *generation, sealed.summary, origin); !entered) {
    return entered.take_error();
  }
  if (auto sound = store_.damage().check_sound(dataset, *generation); !sound) return sound.take_error();
  return generation;
}

// Called with the dataset locked, so that it can't be evicted between becoming ready and being leased.
Result<> Stager::hold(const Source& source, Staged& staged) {
  if (source.hold.empty()) return {};
  Lease lease;
  lease.id = source.hold;
  lease.dataset = staged.dataset;
  lease.generation = staged.generation;
  lease.holder = "a request that is under way";
  lease.process = process_with(source.answers_for != 0 ? source.answers_for : ::getpid());
  auto held = store_.catalog().add_lease(lease);
  if (held || held.error().kind != Errc::NoSpace) return held;
  staged.is_held = false;
  staged.report.warnings.push_back("it is not held until its lease begins: " + held.error().message());
  return {};
}

// The dataset is ready now, so an error here does not fail its staging.
void Stager::drop_superseded(Staged& staged, const std::vector<InUse>& in_use) {
  auto rows = store_.ready_generations(staged.dataset);
  if (!rows) return;
  std::ranges::reverse(*rows);  // as in superseded_in()
  const bool is_doubtful = std::ranges::any_of(*rows, [&](const GenerationRow& row) {
    return row.generation == staged.generation && row.is_doubtful;
  });
  for (const GenerationRow& row : *rows) {
    const bool is_used = std::ranges::any_of(in_use, [&](const InUse& one) {
      return one.dataset == row.dataset && one.generation == row.generation;
    });
    // A doubtful generation does not replace a sound one: the link still points at the sound one.
    const bool is_needed = is_used || (is_doubtful && row.is_sound());
    if (row.generation == staged.generation || is_needed) continue;
    monitor_.set_reason("the copy is ready; an older one is being removed");
    const auto looked = look_before_deleting(store_, {row}, stop_);
    if (!looked || !looked->obstacle.empty()) continue;  // a program reads it: removed later
    auto evicted = store_.mark_evicted({row});
    if (evicted) evicted = store_.delete_marked({row});
    if (evicted || evicted.error().kind == Errc::Refused) continue;  // leased, or opened just now: later
    staged.report.warnings.push_back("an older generation was not removed: " + evicted.error().message());
  }
}

}  // namespace spark::staging
