#include "fleet/adopted/folder.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/cache/serve.hpp"
#include "staging/copy/source_place.hpp"
#include "staging/manifest/file_system_type.hpp"
#include "staging/manifest/source_identity.hpp"

namespace spark::fleet {
namespace {

constexpr std::uint32_t kExchangedModes = 01777;  // as of a copy in a fleet

// Its content is the commit, whatever else is in the file: no reading of it is needed.
void settle_ref(FolderNow& now) {
  staging::Entries& entries = now.walked.walked.entries;
  const auto ref = std::ranges::find(entries, std::string_view(now.walked.ref),
                                     [](const staging::Entry& one) { return one.path.view(); });
  if (now.walked.ref.empty() || ref == entries.end()) return;
  ref->hash = staging::digest_of(now.walked.record.revision);
  ref->size = ref->allocated = now.walked.record.revision.size();
  ref->mtime_ns = ref->ctime_ns = 0;
  ref->inode = ref->hash.high;  // else peers take the refs of all revisions for one unchanged file
}

}  // namespace

std::string definition_of(const AdoptedFolder& folder) {
  json::array text{folder.path.native(), json::array(folder.exclude.begin(), folder.exclude.end()),
                   static_cast<int>(folder.links)};
  if (const auto& model = folder.model) {
    text.push_back(json::array(model->include.begin(), model->include.end()));
    for (const std::string& one : {model->name, model->revision, model->expect}) text.emplace_back(one);
    text.emplace_back(std::string(staging::to_string(model->check)));
  }
  return json::serialize(text);
}

Result<FolderNow> look_at(const AdoptedFolder& folder, const StopFlag& stop, const std::string& commit) {
  staging::Source source{folder.dataset, folder.path, {}};
  source.model = folder.model;
  auto tree = staging::open_source(source);
  if (!tree) return tree.take_error();
  if (auto noted = staging::note_file_system(*tree); !noted) return noted.take_error();
  const std::string_view type = std::string_view(tree->file_system).substr(0, tree->file_system.find(' '));
  if (staging::is_of_network(type))
    return fail(Errc::Refused, tree->shown("") + " is on a network file system, where files change unseen",
                "stage it, or give the other hosts the same path");
  FolderNow now{std::move(*tree), {}};
  if (folder.model) {
    staging::ModelOptions wanted = *folder.model;
    if (wanted.revision.empty()) wanted.revision = staging::place_of_model(folder.path).revision;
    auto model = staging::walk_model(now.tree, wanted, stop, commit);
    if (!model) return model.take_error();
    now.walked = std::move(*model);
    settle_ref(now);
  } else {
    auto walked = staging::walk_source(now.tree, folder.exclude, folder.links, stop);
    if (!walked) return walked.take_error();
    now.walked.walked = std::move(*walked);
  }
  for (staging::Entry& entry : now.walked.walked.entries)
    if (entry.type == staging::EntryType::File) entry.mode &= now.tree.file_mode_mask & kExchangedModes;
  return now;
}

Result<FolderThen> look_at_offered(const AdoptedFolder& folder, staging::ManifestReader& offer,
                                   const StopFlag& stop) {
  const auto record = staging::parse_model_record(offer.header().model);
  auto now = look_at(folder, stop, record ? record->revision : "");
  if (!now) return now.take_error();
  const bool is_same = offer.header().definition == definition_of(folder) && offer.rewind() &&
                       staging::is_same_source(offer, now->walked.walked.entries);
  return FolderThen{std::move(*now), is_same};
}

staging::Digest state_of(const staging::Entries& entries) {
  staging::Hasher hasher;
  const auto add_text = [&](std::string_view text) {
    hasher.add_number(text.size());
    hasher.add(text);
  };
  for (const staging::Entry& entry : entries) {
    add_text(entry.path.view());
    add_text(entry.target.view());
    add_text(entry.link_to.view());
    for (const std::uint64_t number : {std::uint64_t(entry.type), std::uint64_t(entry.mode),
                                       std::uint64_t(entry.uid), std::uint64_t(entry.gid)})
      hasher.add_number(number);
    if (entry.type == staging::EntryType::File) staging::add(hasher, staging::identity_of(entry));
  }
  return hasher.digest();
}

}  // namespace spark::fleet
