#include "staging/models/hub_cache.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <map>
#include <set>
#include <utility>

#include "base/access/named_path.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/files/metadata.hpp"
#include "staging/models/model_files.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kCommitDigits = kSha1Digits;
constexpr std::size_t kLongestRef = 4 * kKiB, kLargestTree = 64 * kMiB;
constexpr char kSnapshots[] = "snapshots/", kRefs[] = "refs/", kLists[] = "trees/", kAbsent[] = ".no_exist/";
constexpr char kSharedMark[] = "blobs/.huggingface-shared-blobs";

std::string replaced(std::string text, char what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, 1, by);
  return text;
}

Result<HubSnapshot> snapshot_in(const Tree& tree, const std::string& folder, const std::string& revision,
                                const std::string& assumed) {
  HubSnapshot snapshot{folder, revision, revision};
  if (is_hex(revision, kCommitDigits)) {
    snapshot.ref.clear();
  } else if (is_hex(assumed, kCommitDigits)) {
    snapshot.commit = assumed;
  } else {
    const auto commit = read_small(tree, join_path(folder, kRefs + revision), kLongestRef);
    if (!commit) return commit.take_error();
    if (!*commit)
      return fail(Errc::NotFound, tree.shown(folder) + " has no revision " + printable(revision),
                  "`hf cache ls --revisions` lists the revisions of this cache");
    snapshot.commit = trim(**commit);
    if (!is_hex(snapshot.commit, kCommitDigits))
      return fail(Errc::Mismatch, tree.shown(join_path(folder, kRefs + revision)) + " names no commit");
  }
  if (is_folder(tree, snapshot.path())) return snapshot;
  return fail(Errc::NotFound, tree.shown(folder) + " has no snapshot of " + snapshot.commit,
              "download it first");
}

// Where all payloads of the cache are: the folder of the model, or of all models if they share payloads.
std::filesystem::path limit_of(const Tree& tree, const HubSnapshot& snapshot) {
  const std::filesystem::path root = tree.root();
  if (!snapshot.folder.empty()) return root;
  const auto mark = open_named(root.parent_path() / kSharedMark, Links::LastIsItself);
  return mark && S_ISREG(mark->info.st_mode) ? root.parent_path() : root;
}

// Where the cache is the limit, it may hold a folder `blobs` that is no store of this layout.
Result<> check_store(const Tree& tree, const HubSnapshot& snapshot) {
  if (snapshot.folder.empty()) return {};
  const auto& targets = tree.grafts.targets;
  const bool uses_store =
      std::ranges::any_of(targets, [](const auto& graft) { return graft.second.starts_with("blobs/"); });
  if (!uses_store || open_beneath(tree, kSharedMark, O_PATH | O_NOFOLLOW)) return {};
  return fail(Errc::Mismatch,
              "symlinks of " + tree.shown(snapshot.path()) + " lead to " + tree.shown("blobs") +
                  ", which has no " + std::string(name_of(kSharedMark)) + " and so is no store of models",
              "download the model again");
}

// The text of the symlink, or empty.
std::string link_text(const Tree& tree, const std::string& path) {
  const Parent parent = open_parent(tree, path);
  char target[PATH_MAX];
  const ssize_t length =
      parent.folder ? ::readlinkat(parent.folder.get(), parent.name.c_str(), target, sizeof target) : -1;
  return length < 0 ? "" : std::string(target, static_cast<std::size_t>(length));
}

std::string list_of_files(const HubSnapshot& snapshot) {
  return join_path(snapshot.folder, kLists + snapshot.commit + ".json");
}

// By the name of its blob, "../../blobs/ETAG". The name of a payload that models share is no digest.
PublishedFile published_by_name(const Tree& tree, const Entry& entry, const std::string& path) {
  PublishedFile file{path, 0, "", ""};
  const std::string target = link_text(tree, std::string(entry.path));
  const std::string_view name = name_of(target);
  const std::string_view folder = folder_of(target);
  if (!folder.ends_with("../blobs/") || (!is_hex(name, kSha256Digits) && !is_hex(name, kCommitDigits)))
    return file;
  file.hex = name;
  file.told_by = "the name of its blob";
  return file;
}

// No value if there is no list of the files.
Result<std::optional<std::map<std::string, PublishedFile>>> read_tree_list(const Tree& tree,
                                                                           const std::string& path) {
  const auto text = read_small(tree, path, kLargestTree);
  if (!text) return text.take_error();
  return *text ? parse_tree_list(**text, path) : std::nullopt;
}

}  // namespace

std::optional<std::map<std::string, PublishedFile>> parse_tree_list(std::string_view text,
                                                                    const std::string& told_by) {
  std::map<std::string, PublishedFile> all;
  const auto object = parse_json_object(text);
  const json::object* files = object ? get_object(*object, "files") : nullptr;
  if (files == nullptr) return std::nullopt;
  for (const auto& member : *files) {
    const auto* file = member.value().if_object();
    if (file == nullptr) continue;
    PublishedFile published{std::string(member.key()), 0, get_text(*file, "lfs_sha256"), told_by};
    const auto size = get_int(*file, published.hex.empty() ? "size" : "lfs_size");
    published.size = size && *size > 0 ? static_cast<Bytes>(*size) : 0;
    if (published.hex.empty()) published.hex = get_text(*file, "blob_id");
    if (!is_hex(published.hex, kSha256Digits) && !is_hex(published.hex, kCommitDigits)) published.hex.clear();
    all.emplace(published.path, published);
  }
  return all;
}

std::string hub_folder_of(const std::string& model) {
  return "models--" + replaced(model, '/', "--");
}

std::string snapshot_path(const std::string& folder, const std::string& commit) {
  return join_path(folder, kSnapshots + commit);
}

bool is_note_of_hub(std::string_view path, const std::string& folder) {
  const std::string above = join_path(folder, "");
  if (!path.starts_with(above)) return false;
  path.remove_prefix(above.size());
  return path.starts_with(kRefs) || path.starts_with(kLists) || path.starts_with(kAbsent);
}

bool is_commit(std::string_view text) {
  return is_hex(text, kCommitDigits);
}

std::string HubSnapshot::path() const {
  return snapshot_path(folder, commit);
}

std::string HubSnapshot::ref_path() const {
  return ref.empty() ? "" : join_path(folder, kRefs + ref);
}

Result<std::optional<HubSnapshot>> find_hub_snapshot(const Tree& tree, const std::string& model,
                                                     const std::string& revision, const std::string& commit) {
  const std::string folder = hub_folder_of(model);
  const std::string wanted = revision.empty() ? "main" : revision;
  if (!tree.file.empty()) return std::optional<HubSnapshot>();
  const bool is_model = is_folder(tree, "snapshots") && (is_folder(tree, "refs") || is_folder(tree, "blobs"));
  if (is_model && name_of(tree.root()) != folder)
    return fail(Errc::NotFound, tree.shown("") + " is not the folder of " + printable(model),
                "its folder is named " + printable(folder));
  if (is_model || is_folder(tree, folder)) {
    auto snapshot = snapshot_in(tree, is_model ? "" : folder, wanted, commit);
    if (!snapshot) return snapshot.take_error();
    return std::optional(std::move(*snapshot));
  }
  if (!link_text(tree, folder).empty())
    return fail(Errc::NotFound,
                tree.shown(folder) + " is a symlink to no folder of that name, or to one that can't be used",
                "it has to lead to a folder " + printable(folder) + ", on the same volume");
  bool is_cache = false;
  const auto look = [&](const std::string& name) -> Result<> {
    is_cache = is_cache || name.starts_with("models--");
    return {};
  };
  if (auto listed = for_each_name(open_beneath(tree, "", O_RDONLY | O_DIRECTORY), tree.shown(""), look);
      !listed)
    return listed.take_error();
  if (!is_cache) return std::optional<HubSnapshot>();
  return fail(Errc::NotFound, tree.shown("") + " has no model " + printable(model),
              "download it there, or check the name: it is looked for as " + printable(folder));
}

Result<HubModel> walk_hub_snapshot(Tree& tree, const HubSnapshot& snapshot,
                                   const std::vector<std::string>& include, const StopFlag& stop) {
  const std::string begin = snapshot.path() + "/";
  Parts parts{{snapshot.path()}, {}, {}};
  parts.leaves_out = [&](std::string_view path) {
    return path.starts_with(begin) && !matches(include, std::string(path.substr(begin.size())));
  };
  const std::string list = list_of_files(snapshot);
  const std::string absent_names = join_path(snapshot.folder, kAbsent + snapshot.commit);
  if (is_folder(tree, absent_names)) parts.folders.push_back(absent_names);
  if (!snapshot.ref.empty()) parts.files.push_back(snapshot.ref_path());
  auto listed = read_tree_list(tree, list);
  if (!listed) return listed.take_error();
  if (*listed) parts.files.push_back(list);
  auto walked = walk_without_links(tree, parts, limit_of(tree, snapshot), stop);
  if (!walked) return walked.take_error();
  if (auto store = check_store(tree, snapshot); !store) return store.take_error();

  HubModel model;
  model.has_list = listed->has_value();
  auto& known = *listed ? **listed : listed->emplace();
  for (Entry& entry : walked->entries)  // as write_ref() makes it, even if it has a line end here
    if (entry.path.view() == snapshot.ref_path()) entry.size = entry.allocated = kCommitDigits;
  Grafts grafts = std::exchange(tree.grafts, {});  // of the snapshot, its own links are read
  for (const Entry& entry : walked->entries) {
    if (entry.type != EntryType::File || !entry.path.view().starts_with(begin)) continue;
    const std::string path(entry.path.view().substr(begin.size()));
    PublishedFile file = published_by_name(tree, entry, path);
    if (const auto told = known.find(path); told != known.end()) {
      file.size = told->second.size;
      if (file.hex.empty()) file = told->second;
      known.erase(told);
    }
    if (file.size != 0 && file.size != entry.size)
      return fail(Errc::Mismatch,
                  tree.shown(entry.path) + " has " + std::to_string(entry.size) +
                      " bytes, and its publisher's file has " + std::to_string(file.size),
                  "download it again");
    model.published.push_back(std::move(file));
  }
  tree.grafts = std::move(grafts);
  for (const auto& [path, file] : known)
    if (matches(include, path)) model.absent.push_back(path);
  // With it, programs refuse a copy that lacks some of the files in it (huggingface_hub 1.22 and later).
  if (!known.empty())
    std::erase_if(walked->entries, [&](const Entry& entry) { return entry.path.view() == list; });
  drop_empty_folders(walked->entries, begin);
  drop_empty_folders(walked->entries, join_path(snapshot.folder, "trees"));
  model.walked = std::move(*walked);
  return model;
}

Result<> write_ref(const Tree& copy, Entries& entries, std::string_view path, const std::string& commit) {
  Entry* entry = find_entry(entries, path);
  if (entry == nullptr) return {};
  const Digest hash = digest_of(commit);
  if (entry->hash == hash) return {};
  const std::string shown = copy.shown(path);
  const Parent parent = open_parent(copy, path);
  if (!parent.folder || ::unlinkat(parent.folder.get(), parent.name.c_str(), 0) != 0)
    return fail_errno(errno, "replacing " + shown);
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd file(::openat(parent.folder.get(), parent.name.c_str(), flags, 0600));
  if (!file) return fail_errno(errno, "creating " + shown);
  if (::write(file.get(), commit.data(), commit.size()) != static_cast<ssize_t>(commit.size()))
    return fail_errno(errno, "writing " + shown);
  entry->size = entry->allocated = commit.size();
  entry->hash = hash;
  if (auto put = put_plain_metadata(file.get(), *entry, shown); !put) return put;
  const std::string_view above = path.substr(0, path.rfind('/'));
  const UniqueFd folder = open_beneath(copy, above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (::fsync(file.get()) != 0 || !folder || ::fsync(folder.get()) != 0)
    return fail_errno(errno, "flushing " + shown);
  return {};
}

}  // namespace spark::staging
