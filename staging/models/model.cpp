#include "staging/models/model.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "staging/models/hub_cache.hpp"
#include "staging/models/model_folder.hpp"
#include "staging/models/structure.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kLongDigest = 64, kMostNamed = 3;

// Which digests are checked, and how many files have one.
void note_digests(ModelRecord& record, std::vector<PublishedFile> files, const std::string& folder) {
  const bool are_checked = record.check == ModelCheck::Published || record.check == ModelCheck::Complete;
  for (PublishedFile& file : files) {
    if (!are_checked) file.hex.clear();
    ++(file.hex.empty() ? record.none : file.hex.size() == kLongDigest ? record.sha256 : record.git_sha1);
    file.path = folder + file.path;
  }
  record.digests = std::move(files);
}

Result<> check_complete(const Tree& tree, const HubSnapshot& snapshot, const HubModel& found) {
  const std::string model = tree.shown(snapshot.path());
  if (!found.has_list) {
    return fail(Errc::Mismatch, model + " has no list of the revision's files, which 'check: complete' needs",
                "`hf download ORG/NAME` writes it since version 1.22 of huggingface_hub");
  }
  if (found.absent.empty()) return {};
  std::vector<std::string> names;
  for (const std::string& path : found.absent) names.push_back(printable(path));
  const bool are_more = names.size() > kMostNamed;
  names.resize(std::min(names.size(), kMostNamed));
  return fail(Errc::Mismatch,
              model + " lacks " + std::to_string(found.absent.size()) +
                  " of its revision's files: " + join(names, ", ") + (are_more ? ", …" : ""),
              "download them, or choose the files with 'include'");
}

// A download writes the small files first, and the weights under other names.
Result<> check_begun(const Tree& tree, const HubSnapshot& snapshot, const HubModel& found) {
  const auto ends = [](std::string_view end) {
    return [end](const PublishedFile& file) { return file.path.ends_with(end); };
  };
  const auto is_of_weights = [](const PublishedFile& file) { return is_weights(file.path); };
  if (std::ranges::any_of(found.published, is_of_weights)) return {};
  bool is_begun = std::ranges::any_of(found.published, ends(".index.json"));
  const std::string blobs = (snapshot.folder.empty() ? "" : snapshot.folder + "/") + "blobs";
  const auto look = [&](const std::string& name) -> Result<> {
    is_begun = is_begun || name.ends_with(".incomplete");
    return {};
  };
  if (UniqueFd folder = open_beneath(tree, blobs, O_RDONLY | O_DIRECTORY))
    if (auto listed = for_each_name(std::move(folder), tree.shown(blobs), look); !listed) return listed;
  if (!is_begun) return {};
  return fail(Errc::Mismatch, tree.shown(snapshot.path()) + " has no weights: its download has not ended",
              "wait until it has, download it again, or choose the files without weights with 'include'");
}

// `has_list`: all files of the revision are known.
Result<Model> as_model(const Tree& tree, FolderModel found, const ModelOptions& wanted, bool has_list) {
  if (wanted.check == ModelCheck::Complete && !has_list)
    return fail(
        Errc::Invalid,
        tree.shown(found.folder) + " has no list of the revision's files, which 'check: complete' needs",
        "leave it out: 'check: published' compares the digests that are there");
  if (found.published.empty())
    return fail(Errc::NotFound, tree.shown(found.folder) + " has no file that 'include' names",
                "its patterns are for a file's path in the model, or its name");
  Model model;
  model.record.name = wanted.name;
  model.record.revision = found.revision;
  model.record.entry_point = found.folder;
  model.record.check = wanted.check;
  model.record.expect = wanted.expect;
  note_digests(model.record, std::move(found.published), found.folder.empty() ? "" : found.folder + "/");
  model.walked = std::move(found.walked);
  return model;
}

Result<Model> walk_hub(Tree& tree, const HubSnapshot& snapshot, const ModelOptions& wanted,
                       const StopFlag& stop) {
  auto found = walk_hub_snapshot(tree, snapshot, wanted.include, stop);
  if (!found) return found.take_error();
  if (wanted.check == ModelCheck::Complete) {
    if (auto all = check_complete(tree, snapshot, *found); !all) return all.take_error();
  }
  if (wanted.check != ModelCheck::None && wanted.include.empty()) {
    if (auto ended = check_begun(tree, snapshot, *found); !ended) return ended.take_error();
  }
  auto model = as_model(
      tree, {std::move(found->walked), snapshot.path(), snapshot.commit, std::move(found->published)}, wanted,
      true);
  if (!model) return model;
  model->record.hub_folder = snapshot.folder;
  model->record.absent = found->absent.size();
  model->ref = snapshot.ref_path();
  return model;
}

}  // namespace

ModelPlace place_of_model(const std::filesystem::path& path) {
  const auto is_model = [](const std::filesystem::path& folder) {
    return folder.filename().native().starts_with("models--");
  };
  if (is_model(path)) return {path.parent_path(), ""};
  const auto snapshots = path.parent_path();
  if (is_commit(path.filename().native()) && snapshots.filename() == "snapshots" &&
      is_model(snapshots.parent_path()))
    return {snapshots.parent_path().parent_path(), path.filename().native()};
  return {path, ""};
}

Result<Model> walk_model(Tree& tree, const ModelOptions& wanted, const StopFlag& stop,
                         const std::string& commit) {
  tree.grafts = {};
  const auto snapshot = find_hub_snapshot(tree, wanted.name, wanted.revision, commit);
  if (!snapshot) return snapshot.take_error();
  if (*snapshot) return walk_hub(tree, **snapshot, wanted, stop);
  auto of_ollama = walk_ollama(tree, wanted, stop);
  if (!of_ollama) return of_ollama.take_error();
  if (*of_ollama) return as_model(tree, std::move(**of_ollama), wanted, true);
  auto folder = walk_model_folder(tree, wanted, stop);
  if (!folder) return folder.take_error();
  if (*folder) return as_model(tree, std::move(**folder), wanted, false);
  return fail(
      Errc::NotFound, tree.shown("") + " has no model " + printable(wanted.name),
      "give the folder that HF_HUB_CACHE names (often ~/.cache/huggingface/hub), ollama's or ModelScope's "
      "models, or the model's own folder");
}

}  // namespace spark::staging
