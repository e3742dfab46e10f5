// Before a staging copies: compares the source with the newest sound copy.
#include <algorithm>

#include "staging/cache/inventory.hpp"
#include "staging/cache/serve.hpp"
#include "staging/cache/stager.hpp"
#include "staging/copy/source_place.hpp"
#include "staging/copy/transfer/touched.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

Result<> Stager::compare(const Source& source, const Tree& tree, const CopyOptions& options,
                         const PartialArea& area, const GenerationRow* earlier, Walked& walked,
                         std::optional<Staged>& same) {
  const bool can_read = !source.is_away && !source.only_cached && !source.is_doubtful;
  if (!can_read || earlier == nullptr || walked.entries.empty()) return {};
  const Destination place = store_.folder().place(source.dataset, earlier->generation);
  auto compared = compare_touched(tree, walked.entries, place, area, options, monitor_, stop_);
  if (!compared) return compared.take_error();
  equal_ = std::move(compared->equal);
  GenerationRow row = *earlier;
  Result<bool> is_renewed = false;
  if (compared->differs == Compared::Differs::InRights) {
    is_renewed = change_rights(source, row, walked.entries);
  } else if (compared->differs == Compared::Differs::InTimes) {
    is_renewed = renew(place, walked.entries).map([] { return true; });
  }
  if (!is_renewed) return is_renewed.take_error();
  if (!*is_renewed) return {};
  same = serve_same_entries(store_, source, row, walked, monitor_, stop_);
  return remove_tree(area.folder(), "compared");
}

// Of the copy as it is, if nobody uses it; generations share files, so there must be no other one. Meanwhile
// it counts as evicted: after an interruption it is copied again. False: it is used.
Result<bool> Stager::change_rights(const Source& source, GenerationRow& row, const Entries& walked) {
  const auto rows = store_.ready_generations(row.dataset);
  if (!rows) return rows.take_error();
  const bool is_used = std::ranges::any_of(
      source.in_use, [&](const InUse& one) { return one.dataset == row.dataset && one.generation != 0; });
  if (rows->size() > 1 || is_used) return false;
  const auto looked = look_before_deleting(store_, {row}, stop_);
  if (!looked || !looked->obstacle.empty()) return false;
  auto marked = store_.mark_evicted({row});
  if (!marked && marked.error().kind == Errc::Refused) return false;  // leased
  if (!marked) return marked.take_error();
  const Destination place = store_.folder().place(row.dataset, row.generation);
  if (auto renewed = renew(place, walked); !renewed) return renewed.take_error();
  auto manifest = ManifestReader::open(place.manifest());
  const auto summary = manifest ? summary_of(*manifest) : fail(manifest.error());
  if (!summary) return summary.take_error();
  row.hash = summary->hash;
  return store_.catalog().put(row).map([] { return true; });
}

// Also after an eviction: the catalog knows the last copy.
Result<> Stager::check_place(const Source& source, const Tree& tree, const Walked& walked,
                             const CopyOptions& options, const std::vector<GenerationRow>& ready) {
  if (!options.keeps_place || source.is_away) return {};
  const auto from = store_.catalog().copied_from(source.dataset);
  if (!from) return from.take_error();
  // A catalog of an earlier version does not have it.
  if (!from->had_files && (ready.empty() || ready.front().files == 0)) return {};
  ManifestHeader then;
  then.source = from->source;
  then.file_system = from->file_system;
  if (source.device) then.file_system.clear();  // compared when the volume was mounted
  auto checked = check_source_place(tree, walked, then);
  if (!checked) checked.error().is_away = true;
  return checked;
}

}  // namespace spark::staging
