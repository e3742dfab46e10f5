#include "fleet/adopted/verify_folder.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "fleet/adopted/folder_hash.hpp"
#include "fleet/adopted/offer_file.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {
namespace {

constexpr std::size_t kShown = 5;

tl::unexpected<Error> not_offered(const AdoptedFolder& folder) {
  return fail(Errc::Unavailable,
              "the adopted folder of dataset " + printable(folder.dataset) + " is not offered to peers now",
              "`spark-stage status` says why");
}

// The files with other content than in the manifest, which lists the same entries in the same order.
Result<staging::Entries> find_damaged(staging::ManifestReader& manifest, const staging::Entries& entries) {
  staging::Entries damaged;
  if (auto begun = manifest.rewind(); !begun) return begun.take_error();
  for (const staging::Entry& now : entries) {
    const auto then = manifest.next();
    if (then && staging::is_content(now) && now.hash != then->hash) damaged.push_back(now);
  }
  if (auto read = manifest.error(); !read) return read.take_error();
  return damaged;
}

}  // namespace

Error damaged_content(const staging::Tree& tree, const std::vector<std::string>& damaged) {
  const std::size_t shown = std::min(damaged.size(), kShown);
  const std::string rest =
      damaged.size() > shown ? " and " + std::to_string(damaged.size() - shown) + " more" : "";
  return {Errc::Mismatch,
          tree.shown("") + ": other content than was hashed, without a trace of a change: " +
              join({damaged.data(), shown}, "; ") + rest,
          "peers don't get the folder now; replace these files, or `touch` those that are right"};
}

Result<VerifiedFolder> verify_folder(const AdoptedFolder& folder, const std::filesystem::path& state_dir,
                                     const staging::ProgressSink& progress, const StopFlag& stop) {
  const auto offer = offer_file(state_dir, folder.dataset);
  auto manifest = staging::ManifestReader::open(offer);
  if (!manifest || manifest->header().definition != definition_of(folder)) return not_offered(folder);
  auto now = look_at(folder, stop);
  if (!now) return now.take_error();
  staging::Entries& entries = now->walked.walked.entries;
  if (!staging::is_same_source(*manifest, entries)) {
    set_aside(offer);
    return not_offered(folder);
  }
  const staging::Digest before = state_of(entries);
  staging::Monitor monitor(progress);
  if (auto read = read_content(*now, monitor, stop); !read) return read.take_error();
  auto damaged = find_damaged(*manifest, entries);
  if (!damaged) return damaged.take_error();
  const auto after = look_at(folder, stop);
  if (!after || state_of(after->walked.walked.entries) != before)
    return fail(Errc::Unavailable, now->tree.shown("") + " was changed while it was verified",
                "verify it again when `spark-stage status` says that it is offered");
  if (damaged->empty()) return VerifiedFolder{staging::summary_of(entries), monitor.seconds()};
  if (auto noted = note_damaged(offer, *damaged); !noted) return noted.take_error();
  std::vector<std::string> names;
  for (const staging::Entry& entry : *damaged) names.push_back(printable(entry.path.view()));
  return fail(damaged_content(now->tree, names));
}

}  // namespace spark::fleet
