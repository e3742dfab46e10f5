#include "staging/models/model_folder.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.hpp"
#include "staging/models/git_index.hpp"
#include "staging/models/model_files.hpp"
#include "staging/models/structure.hpp"
#include "staging/models/sums.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kLargestMetadata = 64 * kKiB, kLargestSums = 64 * kMiB;
constexpr std::string_view kHubFiles = ".cache/huggingface/", kHubDownloads = ".cache/huggingface/download/";
constexpr std::string_view kMetadata = ".metadata", kUnfinished = ".incomplete";
constexpr std::string_view kModelScopeTemporary = "._____temp/";
// Beside the model: what is known of it is not of use to another program.
constexpr std::array<std::string_view, 3> kModelScopeFiles = {".msc", ".mv", ".mdl"};
constexpr std::array<std::string_view, 4> kConfigs = {"config.json", "model_index.json",
                                                      "adapter_config.json", "params.json"};

// ModelScope's folder names have no dots.
std::string without_dots(const std::string& name) {
  std::string folder;
  for (const char c : name) folder += c == '.' ? std::string("___") : std::string(1, c);
  return folder;
}

struct Place {
  std::string folder, revision;
};

// OWNER/NAME in a folder of many models: as ModelScope, LM Studio and people name it. The tree itself if it
// is none.
Result<Place> find_place(const Tree& tree, const ModelOptions& wanted) {
  const std::string flat = without_dots(wanted.name), name = wanted.name;
  for (const std::string above : {"models/", "", "hub/models/", "hub/"})
    for (const std::string& one : {flat, name})
      if (is_folder(tree, above + one)) return Place{above + one, ""};
  std::string pair = wanted.name;
  if (const std::size_t slash = pair.find('/'); slash != std::string::npos) pair.replace(slash, 1, "--");
  for (const std::string above : {"models/", "", "hub/models/"}) {
    const std::string snapshots = above + pair + "/snapshots";
    if (!is_folder(tree, snapshots)) continue;
    auto revisions =
        names_in(open_beneath(tree, snapshots, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), tree.shown(snapshots));
    if (!revisions) return revisions.take_error();
    std::ranges::sort(*revisions);
    const bool is_chosen = !wanted.revision.empty();
    if (is_chosen) std::erase_if(*revisions, [&](const std::string& one) { return one != wanted.revision; });
    if (revisions->size() == 1) return Place{join_path(snapshots, revisions->front()), revisions->front()};
    if (revisions->empty())
      return fail(Errc::NotFound, tree.shown(snapshots) + " has no revision" +
                                      (is_chosen ? " " + printable(wanted.revision) : ""));
    return fail(Errc::Invalid,
                tree.shown(snapshots) + " has several revisions: " + printable(join(*revisions, ", ")),
                "choose one with `revision`");
  }
  return Place{};
}

// By the names in it.
Result<bool> is_model(const Tree& tree) {
  bool is_it = is_folder(tree, std::string(kHubDownloads.substr(0, kHubDownloads.size() - 1)));
  const auto look = [&](const std::string& name) -> Result<> {
    is_it = is_it || is_weights(name) || std::ranges::count(kConfigs, name) > 0 ||
            std::ranges::count(kModelScopeFiles, name) > 0;
    return {};
  };
  auto listed = for_each_name(open_beneath(tree, "", O_RDONLY | O_DIRECTORY), tree.shown(""), look);
  if (!listed) return listed.take_error();
  return is_it;
}

// What the programs' own files say of a model's files, by path.
class Published {
 public:
  Published(const Tree& tree, std::string folder) : tree_(tree), folder_(std::move(folder)) {
    if (is_folder(tree, join_path(folder_, ".git"))) files_ = files_of_checkout(tree, folder_);
  }

  // ".cache/huggingface/download/a/b.metadata" is about "a/b".
  Result<> take_metadata(const std::string& path) {
    const auto text = read_small(tree_, join_path(folder_, path), kLargestMetadata);
    if (!text) return text.take_error();
    const DownloadMetadata metadata = parse_download_metadata(text->value_or(""));
    const std::string about =
        path.substr(kHubDownloads.size(), path.size() - kHubDownloads.size() - kMetadata.size());
    commits_.insert(metadata.commit);
    required_.emplace(about, path);
    if (!metadata.hex.empty()) files_[about] = {about, 0, metadata.hex, path};
    return {};
  }
  Result<> take_sums(const std::string& path) {
    const auto text = read_small(tree_, join_path(folder_, path), kLargestSums);
    if (!text) return text.take_error();
    for (const SumLine& sum : parse_sums(text->value_or(""), path)) {
      if (sum.name.starts_with('/') || sum.name.find("../") != std::string::npos) continue;  // elsewhere
      const std::string about = std::string(folder_of(path)) + sum.name;
      required_.emplace(about, path);
      files_[about] = {about, 0, sum.sha256, path};
    }
    return {};
  }

  PublishedFile of(const std::string& path) const {
    const auto found = files_.find(path);
    return found == files_.end() ? PublishedFile{path, 0, "", ""} : found->second;
  }
  // Files that have to be there, and who says so.
  const std::map<std::string, std::string>& required() const { return required_; }
  std::string commit() const { return commits_.size() == 1 ? *commits_.begin() : ""; }

 private:
  const Tree& tree_;
  std::string folder_;
  std::map<std::string, PublishedFile> files_;
  std::map<std::string, std::string> required_;
  std::set<std::string> commits_;
};

}  // namespace

DownloadMetadata parse_download_metadata(std::string_view text) {
  const auto lines = split(text, '\n');
  DownloadMetadata metadata;
  if (lines.size() < 2) return metadata;
  if (is_hex(trim(lines[0]), kSha1Digits)) metadata.commit = trim(lines[0]);
  std::string_view etag = trim(lines[1]);
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  if (is_hex(etag, kSha256Digits) || is_hex(etag, kSha1Digits)) metadata.hex = etag;
  return metadata;
}

Result<std::optional<FolderModel>> walk_model_folder(Tree& tree, const ModelOptions& wanted,
                                                     const StopFlag& stop) {
  const bool is_ollamas = wanted.name.find(':') != std::string::npos;
  if (!tree.file.empty() || is_ollamas) return std::optional<FolderModel>();
  auto place = find_place(tree, wanted);
  if (!place) return place.take_error();
  const auto is_it = place->folder.empty() ? is_model(tree) : Result<bool>(true);
  if (!is_it) return is_it.take_error();
  if (!*is_it) return std::optional<FolderModel>();
  FolderModel model;
  model.folder = std::move(place->folder);
  model.revision = std::move(place->revision);
  const std::size_t begin = model.folder.empty() ? 0 : model.folder.size() + 1;
  std::vector<std::string> metadata, sums, unfinished;
  Parts parts{{model.folder}, {}, {}};
  parts.leaves_out = [&](std::string_view full) {
    if (full.size() < begin || !full.starts_with(model.folder)) return false;
    const std::string path(full.substr(begin));
    if (path.starts_with(kHubDownloads) && path.ends_with(kMetadata)) metadata.push_back(path);
    if (path.ends_with(kUnfinished) || path.starts_with(kModelScopeTemporary)) unfinished.push_back(path);
    if (is_sums_file(path)) sums.push_back(path);
    return path.starts_with(kHubFiles) || path == ".git" || path.starts_with(".git/") ||
           path.ends_with(kUnfinished) || path.starts_with(kModelScopeTemporary) ||
           std::ranges::count(kModelScopeFiles, path) > 0 || !matches(wanted.include, path);
  };
  auto walked = walk_without_links(tree, parts, tree.root(), stop);
  if (!walked) return walked.take_error();
  const bool is_checked = wanted.check != ModelCheck::None;
  // The name of a download does not tell which file it is of, so that `include` can't choose.
  if (is_checked && wanted.include.empty() && !unfinished.empty())
    return fail(
        Errc::Mismatch,
        tree.shown(join_path(model.folder, unfinished.front())) + " is of a download that has not ended",
        "end the download, or delete the file if there is none");
  Published published(tree, model.folder);
  for (const std::string& path : metadata)
    if (auto taken = published.take_metadata(path); !taken) return taken.take_error();
  for (const std::string& path : sums)
    if (auto taken = published.take_sums(path); !taken) return taken.take_error();

  std::set<std::string, std::less<>> names;
  for (const Entry& entry : walked->entries) {
    if (entry.type != EntryType::File || entry.path.view().size() < begin) continue;
    const std::string path(entry.path.view().substr(begin));
    PublishedFile file = published.of(path);
    if (file.size != 0 && file.size != entry.size)
      return fail(Errc::Mismatch, tree.shown(entry.path) + " has " + std::to_string(entry.size) +
                                      " bytes, and " + printable(file.told_by) + " says " +
                                      std::to_string(file.size));
    model.published.push_back(std::move(file));
    names.insert(path);
  }
  for (const auto& [path, told_by] : published.required()) {
    if (!is_checked || names.contains(path) || !matches(wanted.include, path)) continue;
    return fail(
        Errc::Mismatch,
        tree.shown(join_path(model.folder, path)) + " is missing, and " + printable(told_by) + " lists it",
        "download it again");
  }
  if (model.revision.empty()) model.revision = published.commit();
  if (!wanted.revision.empty() && wanted.revision != model.revision)
    return fail(
        model.revision.empty() ? Errc::Invalid : Errc::NotFound,
        tree.shown(model.folder) + (model.revision.empty() ? " does not tell its revision"
                                                           : " is of revision " + printable(model.revision)),
        "leave `revision` out, or download that revision");
  drop_empty_folders(walked->entries, model.folder.empty() ? "" : model.folder + "/");
  model.walked = std::move(*walked);
  return std::optional(std::move(model));
}

}  // namespace spark::staging
