#include "staging/models/model.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "staging/models/hub_cache.hpp"

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

Result<Model> walk_hub(Tree& tree, const HubSnapshot& snapshot, const ModelOptions& wanted,
                       const StopFlag& stop) {
  auto found = walk_hub_snapshot(tree, snapshot, wanted.include, stop);
  if (!found) return found.take_error();
  if (wanted.check == ModelCheck::Complete) {
    if (auto all = check_complete(tree, snapshot, *found); !all) return all.take_error();
  }
  if (found->published.empty()) {
    return fail(Errc::NotFound, tree.shown(snapshot.path()) + " has no file that 'include' names",
                "its patterns are for a file's path in the model, or its name");
  }
  Model model;
  model.record.name = wanted.name;
  model.record.revision = snapshot.commit;
  model.record.entry_point = snapshot.path();
  model.record.hub_folder = snapshot.folder;
  model.record.check = wanted.check;
  model.record.expect = wanted.expect;
  model.record.absent = found->absent.size();
  note_digests(model.record, std::move(found->published), snapshot.path() + "/");
  model.ref = snapshot.ref_path();
  model.walked = std::move(found->walked);
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

Result<Model> walk_model(Tree& tree, const ModelOptions& wanted, const StopFlag& stop) {
  tree.grafts = {};
  const auto snapshot = find_hub_snapshot(tree, wanted.name, wanted.revision);
  if (!snapshot) return snapshot.take_error();
  if (*snapshot) return walk_hub(tree, **snapshot, wanted, stop);
  return fail(Errc::NotFound, tree.shown("") + " is no cache of Hugging Face",
              "give the folder that HF_HUB_CACHE names, often ~/.cache/huggingface/hub");
}

}  // namespace spark::staging
