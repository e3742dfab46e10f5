// Before a staging copies: compares the source with the newest sound copy.
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
  if (!compared->is_same) return {};
  if (auto renewed = renew(place, walked.entries); !renewed) return renewed;
  same = serve_same_entries(store_, source, tree, *earlier, walked, monitor_, stop_);
  return remove_tree(area.folder(), "compared");
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
