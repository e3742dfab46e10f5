#include "fleet/copies/copy_entries.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "fleet/fetch/peer_entries.hpp"
#include "fleet/fetch/timings.hpp"
#include "staging/files/link_follower.hpp"
#include "staging/models/hub_cache.hpp"
#include "staging/models/structure.hpp"

namespace spark::fleet {
namespace {

constexpr Bytes kMostEntries = 4 * kGiB;
constexpr std::uint32_t kExchangedModes = 01777;
constexpr std::size_t kSha256Digits = 64, kSha1Digits = 40;

tl::unexpected<Error> refuse(const WantedCopy& wanted, const staging::Entry& entry, const std::string& what,
                             const std::string& hint = "stage it from its own source") {
  return fail(
      Errc::Refused,
      "the copy of " + printable(wanted.dataset) + " has " + what + ": " + printable(entry.path.view()),
      hint);
}

// What a copy would lose on its way would make it another one.
Result<> check_exchanged(const WantedCopy& wanted, const staging::Entries& entries) {
  for (const staging::Entry& entry : entries) {
    const bool is_file = entry.type == staging::EntryType::File;
    if (is_file && (entry.mode & ~kExchangedModes) != 0)
      return refuse(wanted, entry, "a setuid or setgid file, which hosts do not exchange");
    if (entry.lost_attributes)
      return refuse(wanted, entry, "extended attributes or ACLs, which hosts do not exchange",
                    "remove them where it is from (`setfattr -x`, `setfacl -b`), and stage it there again");
    if (wanted.model && entry.type == staging::EntryType::Symlink)
      return refuse(wanted, entry, "a symlink, and a copy of a model has none");
  }
  return {};
}

// As if the walk had been made here.
void note_links(staging::Walked& walked) {
  for (const staging::Entry& entry : walked.entries) {
    if (entry.type == staging::EntryType::Symlink &&
        staging::leads_out(entry.path.view(), entry.target.view()))
      ++walked.outside_links;
  }
  if (walked.outside_links > 0)
    walked.warnings.push_back(
        std::to_string(walked.outside_links) +
        " symlinks lead out of the set, and may lead elsewhere than on the host it is from");
}

bool is_folder(const staging::Entries& entries, std::string_view path) {
  const staging::Entry* found = staging::find_entry(entries, path);
  return found != nullptr && found->type == staging::EntryType::Folder;
}

Result<staging::ModelRecord> record_of(const staging::Manifest& manifest, const WantedCopy& wanted) {
  auto record = staging::parse_model_record(manifest.model);
  staging::ModelOptions options = *wanted.model;
  options.expect.clear();
  const bool is_it =
      record && record->satisfies(options) &&
      (options.revision.empty() || record->revision == options.revision) &&
      (record->hub_folder.empty() || record->hub_folder == staging::hub_folder_of(options.name));
  if (!is_it || !is_folder(manifest.entries, record->entry_point) ||
      !is_folder(manifest.entries, record->hub_folder))
    return fail(Errc::Mismatch, "its list is not of model " + printable(options.name));
  if (!staging::names_all_files(*record, manifest.entries))
    return fail(Errc::Mismatch, "its record of model " + printable(options.name) +
                                    " does not name just the files of its list");
  record->expect = wanted.model->expect;
  record->pin.clear();
  record->sha256 = record->git_sha1 = record->none = 0;
  for (const staging::PublishedFile& file : record->digests) {
    const std::size_t digits = file.hex.size();
    if (digits != 0 && digits != kSha1Digits && digits != kSha256Digits)
      return fail(Errc::Mismatch, "its list has a digest that is none");
    ++(digits == 0 ? record->none : digits == kSha256Digits ? record->sha256 : record->git_sha1);
  }
  return std::move(*record);
}

Result<staging::Model> entries_of(Peer& peer, const ChosenCopy& chosen, const WantedCopy& wanted,
                                  const std::filesystem::path& list) {
  auto got = peer.get_file({PeerRequest::Kind::CopyEntries, chosen.hash, 0, 0}, list, kMostEntries, kForWalk);
  if (!got) got.error().kind = Errc::Unavailable;
  if (!got) return got.take_error();
  auto manifest = read_peer_entries(list, peer.name());
  if (!manifest) manifest.error().kind = Errc::Mismatch;
  if (!manifest) return manifest.take_error();
  if (staging::summary_of(manifest->entries).hash != chosen.hash)
    return fail(Errc::Mismatch, "peer " + printable(peer.name()) + " sent the list of another copy");
  if (auto exchanged = check_exchanged(wanted, manifest->entries); !exchanged) return exchanged.take_error();
  staging::Model model;
  if (wanted.model) {
    auto record = record_of(*manifest, wanted);
    if (!record) return fail_with(record.error(), "peer " + printable(peer.name()));
    model.record = std::move(*record);
  }
  model.walked.entries = std::move(manifest->entries);
  for (staging::Entry& entry : model.walked.entries) {
    entry.good_at = 0;
    if (staging::is_content(entry)) entry.allocated = entry.size;  // it comes in pieces, without holes
  }
  note_links(model.walked);
  return model;
}

}  // namespace

Result<staging::Model> get_entries(const ChosenCopy& chosen, const WantedCopy& wanted,
                                   std::span<const std::unique_ptr<Peer>> peers,
                                   const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);  // else the list can't be made there, with the reason
  // Board removes it if this worker is killed.
  const auto list = folder / ("list-" + std::to_string(::getpid()) + ".entries");
  Error away{Errc::Unavailable, "no peer has the copy any more", "try again"};
  std::optional<Error> wrong;
  std::size_t silent = 0;
  for (const auto& peer : peers) {
    if (std::ranges::find(chosen.peers, peer->name()) == chosen.peers.end()) continue;
    auto sent = entries_of(*peer, chosen, wanted, list);
    ::unlink(list.c_str());
    if (sent) return sent;
    const bool is_away = sent.error().kind == Errc::Unavailable;
    if (is_away) ++silent;
    (is_away ? away : wrong.emplace()) = std::move(sent.error());
  }
  // One that is away may have the right list.
  return fail(wrong && silent == 0 ? std::move(*wrong) : std::move(away));
}

}  // namespace spark::fleet
