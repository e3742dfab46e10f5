#include "fleet/adopted/verify_folder.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "fleet/adopted/folder_hash.hpp"
#include "fleet/adopted/offer_file.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/verify/compare_digests.hpp"
#include "staging/copy/verify/digest_check.hpp"
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
Result<std::vector<DamagedFile>> find_damaged(staging::ManifestReader& manifest,
                                              const staging::Entries& entries,
                                              const std::map<std::string, int>& unreadable) {
  std::vector<DamagedFile> damaged;
  if (auto begun = manifest.rewind(); !begun) return begun.take_error();
  for (const staging::Entry& now : entries) {
    const auto then = manifest.next();
    if (!then || !staging::is_content(now)) continue;
    const auto error = unreadable.find(std::string(now.path.view()));
    if (error != unreadable.end())
      damaged.push_back({now, error->second});
    else if (now.hash != then->hash)
      damaged.push_back({now});
  }
  if (auto read = manifest.error(); !read) return read.take_error();
  return damaged;
}

// As for a copy: those of a model, or of the files that it contains.
Result<std::uint64_t> compare_published(const FolderNow& now, const std::filesystem::path& manifest,
                                        staging::Monitor& monitor, const StopFlag& stop) {
  std::vector<staging::PublishedDigest> digests;
  for (const staging::PublishedFile& file : now.walked.record.digests)
    if (!file.hex.empty()) digests.push_back({file.path, file.hex, file.told_by});
  auto checked = now.walked.record.sha256 == 0
                     ? staging::check_digests(now.tree, manifest, {}, monitor, stop)
                     : staging::compare_digests(now.tree, digests, {}, monitor, stop).map([&] {
                         return now.walked.record.sha256;
                       });
  if (!checked && checked.error().kind == Errc::Mismatch) checked.error().hint = "download these files again";
  return checked;
}

}  // namespace

Error damaged_content(const staging::Tree& tree, const std::vector<std::string>& damaged) {
  return {Errc::Mismatch,
          tree.shown("") + ": no longer the content that was hashed, without a trace of a change: " +
              join_first(damaged, kShown, "; "),
          "peers don't get the folder now; replace these files, or `touch` those that are right; after a "
          "fault of the drive, `spark-stage verify` reads them again"};
}

Result<VerifiedFolder> verify_folder(const AdoptedFolder& folder, const std::filesystem::path& state_dir,
                                     bool sha256, const staging::ProgressSink& progress,
                                     const StopFlag& stop) {
  const auto offer = offer_file(state_dir, folder.dataset);
  auto manifest = last_offer(offer);
  if (!manifest) return not_offered(folder);
  auto then = look_at_offered(folder, *manifest, stop);
  if (!then) return then.take_error();
  if (!then->is_same) {
    set_aside(offer);
    return not_offered(folder);
  }
  FolderNow& now = then->now;
  const staging::Entries& entries = now.walked.walked.entries;
  staging::Monitor monitor(progress);
  const auto unreadable = read_content(now, monitor, stop);
  if (!unreadable) return unreadable.take_error();
  auto damaged = find_damaged(*manifest, entries, *unreadable);
  if (!damaged) return damaged.take_error();
  const auto after = look_at_offered(folder, *manifest, stop);
  if (!after || !after->is_same)
    return fail(Errc::Unavailable, now.tree.shown("") + " was changed while it was verified",
                "verify it again when `spark-stage status` says that it is offered");
  if (!damaged->empty()) {
    if (auto noted = note_damaged(offer, *damaged); !noted) return noted.take_error();
    std::vector<std::string> names;
    for (const DamagedFile& file : *damaged) names.push_back(in_words(file));
    return fail(damaged_content(now.tree, names));
  }
  forget_damage(offer);
  take_back(offer, entries);
  VerifiedFolder verified{staging::summary_of(entries), monitor.seconds()};
  if (!sha256) return verified;
  auto published =
      compare_published(now, version_of(offer).is_there() ? offer : aside_of(offer), monitor, stop);
  if (!published) return published.take_error();
  verified.sha256_files = *published;
  verified.seconds = monitor.seconds();
  return verified;
}

}  // namespace spark::fleet
