#include "fleet/adopted/folder.hpp"

#include <fcntl.h>

#include <algorithm>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/cache/serve.hpp"
#include "staging/copy/source_place.hpp"
#include "staging/copy/verify/compare_digests.hpp"
#include "staging/copy/verify/model_check.hpp"
#include "staging/files/metadata.hpp"
#include "staging/manifest/file_system_type.hpp"
#include "staging/manifest/source_identity.hpp"
#include "staging/models/structure.hpp"

namespace spark::fleet {
namespace {

constexpr std::uint32_t kExchangedModes = 01777;  // as of a copy in a fleet

staging::Entry* find(staging::Entries& entries, std::string_view path) {
  const auto found = std::ranges::lower_bound(
      entries, path, {}, [](const staging::Entry& one) -> std::string_view { return one.path.view(); });
  return found != entries.end() && found->path.view() == path ? &*found : nullptr;
}

// Hugging Face's own files have none; huggingface_hub finds no snapshot by one with a line end. A copy would
// have it without.
Result<> check_ref(const FolderNow& now) {
  const staging::Entries& entries = now.walked.walked.entries;
  const auto ref = std::ranges::find(entries, now.walked.ref,
                                     [](const staging::Entry& one) { return std::string(one.path.view()); });
  if (now.walked.ref.empty() || ref == entries.end() || ref->size == now.walked.record.revision.size())
    return {};
  return fail(Errc::Mismatch, now.tree.shown(now.walked.ref) + " has more than the commit's digits",
              "write it without a line end");
}

// What peers do not exchange.
void note_attributes(const staging::Tree& tree, staging::Entries& entries) {
  for (staging::Entry& entry : entries) {
    if (!staging::is_content(entry)) continue;
    const UniqueFd file = staging::open_beneath(tree, entry.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    entry.lost_attributes = !file || staging::has_kept_attributes(file.get()).value_or(true);
  }
}

// The files of the model first, in the order of their record.
struct Reading {
  std::vector<staging::PublishedDigest> files;
  std::vector<staging::Entry*> entries;

  Reading(const staging::ModelRecord& record, staging::Entries& all) {
    std::set<std::string_view> listed;
    for (const staging::PublishedFile& file : record.digests) {
      listed.insert(file.path);
      files.push_back({file.path, file.hex, file.told_by});
      entries.push_back(find(all, file.path));
    }
    for (staging::Entry& entry : all) {
      if (!staging::is_content(entry) || listed.contains(entry.path.view())) continue;
      files.push_back({std::string(entry.path.view()), "", ""});
      entries.push_back(&entry);
    }
  }
};

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

Result<FolderNow> look_at(const AdoptedFolder& folder, const StopFlag& stop) {
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
    auto model = staging::walk_model(now.tree, wanted, stop);
    if (!model) return model.take_error();
    now.walked = std::move(*model);
    if (auto ref = check_ref(now); !ref) return ref.take_error();
  } else {
    auto walked = staging::walk_source(now.tree, folder.exclude, folder.links, stop);
    if (!walked) return walked.take_error();
    now.walked.walked = std::move(*walked);
  }
  for (staging::Entry& entry : now.walked.walked.entries)
    if (entry.type == staging::EntryType::File) entry.mode &= now.tree.file_mode_mask & kExchangedModes;
  return now;
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

Result<staging::Manifest> hash_folder(const AdoptedFolder& folder, FolderNow now, const StopFlag& stop) {
  staging::ModelRecord& record = now.walked.record;
  staging::Manifest manifest;
  manifest.dataset = folder.dataset;
  manifest.source = now.tree.root();
  manifest.file_system = now.tree.file_system;
  manifest.definition = definition_of(folder);
  manifest.entries = std::move(now.walked.walked.entries);
  if (folder.model && record.check != staging::ModelCheck::None)
    if (auto whole = staging::check_structure(now.tree, manifest.entries, stop); !whole)
      return whole.take_error();
  const Reading reading(record, manifest.entries);
  std::vector<staging::FileSums> sums;
  const staging::ProgressSink unseen;
  staging::Monitor monitor(unseen);
  if (auto read = staging::compare_digests(now.tree, reading.files, {}, monitor, stop, &sums); !read)
    return read.take_error();
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (reading.entries[i] != nullptr) reading.entries[i]->hash = sums[i].content;
  for (staging::Entry& entry : manifest.entries)
    if (const auto* first = entry.link_to.empty() ? nullptr : find(manifest.entries, entry.link_to.view()))
      entry.hash = first->hash;
  note_attributes(now.tree, manifest.entries);
  if (!folder.model) return manifest;
  std::vector<std::string> sha256;
  for (std::size_t i = 0; i < record.digests.size(); ++i) sha256.push_back(sums[i].sha256);
  record.pin = staging::pin_of(record.digests, sha256, manifest.entries, record.entry_point);
  if (auto right = staging::check_pin(now.tree, record, record.pin); !right) return right.take_error();
  manifest.model = staging::to_text(record);
  return manifest;
}

}  // namespace spark::fleet
