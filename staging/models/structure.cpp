#include "staging/models/structure.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/files/lfs_pointer.hpp"
#include "staging/models/hub_cache.hpp"
#include "staging/models/model_folder.hpp"
#include "staging/models/weights.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kMostFaults = 10;
constexpr Bytes kLargestIndex = 64 * kMiB;

constexpr std::string_view kSafetensors = ".safetensors", kGguf = ".gguf", kIndex = ".index.json";
constexpr std::array<std::string_view, 9> kWeights = {kSafetensors, kGguf, ".bin",     ".pt", ".pth",
                                                      ".onnx",      ".h5", ".msgpack", ".npz"};

std::string beside(std::string_view path, std::string_view name) {
  return std::string(folder_of(path)) + std::string(name);
}

// A file of the tree, or one that symlinks within it lead to.
struct Opened {
  UniqueFd fd;  // none: it leads to no regular file of the tree
  Bytes size = 0;
};

Opened open_file(const Tree& tree, std::string_view path) {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Opened opened{open_beneath(tree, path, kFlags)};  // also of a file that replaces a symlink
  if (!opened.fd && errno == ELOOP) {
    const auto found = follow_beneath(tree.folder.get(), tree.folder_path, tree.below(path));
    if (found.fd) opened.fd = open_beneath(tree, tree.file.empty() ? found.path : "", kFlags);
  }
  struct stat info {};
  if (!opened.fd || ::fstat(opened.fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  opened.size = static_cast<Bytes>(info.st_size);
  return opened;
}

// "model-00002-of-00003.gguf"
struct PartName {
  std::string prefix;  // with the folder
  unsigned part = 0, parts = 0;
};

std::string name_of_part(const PartName& name, unsigned part) {
  char numbers[32];
  std::snprintf(numbers, sizeof numbers, "-%05u-of-%05u", part, name.parts);
  return name.prefix + numbers + std::string(kGguf);
}

std::optional<PartName> part_name_of(std::string_view path) {
  constexpr std::size_t kEnd = std::string_view("-00001-of-00001.gguf").size();
  if (path.size() <= kEnd) return std::nullopt;
  PartName name{std::string(path.substr(0, path.size() - kEnd))};
  const std::string end(path.substr(name.prefix.size()));
  if (std::sscanf(end.c_str(), "-%5u-of-%5u", &name.part, &name.parts) != 2) return std::nullopt;
  return name_of_part(name, name.part) == path ? std::optional(std::move(name)) : std::nullopt;
}

class Search {
 public:
  Search(const Tree& tree, const Entries& entries) : tree_(tree), entries_(entries) {}

  Result<> look_at(const Entry& entry) {
    const std::string_view path = entry.path;
    const bool is_index = path.ends_with(kIndex);
    if (entry.type == EntryType::Folder || (!is_index && !is_weights(path))) return {};
    const Opened file = open_file(tree_, path);
    if (!file.fd && entry.type == EntryType::Symlink) {
      add(path, "it is a symlink to nothing in the set");
      return {};
    }
    if (!file.fd) return fail_errno(errno, "opening " + tree_.shown(path));
    return is_index ? look_at_index(path, file) : look_at_weights(path, file);
  }

  std::vector<ModelFault> faults;

 private:
  const Tree& tree_;
  const Entries& entries_;
  std::set<std::string> parts_;  // the first part of each model in several files of GGUF that was looked at

  void add(std::string_view path, std::string what) {
    faults.push_back({std::string(path), std::move(what)});
  }

  bool is_there(std::string_view path) const {
    const Entry* found = find_entry(entries_, path);
    return found != nullptr && found->type != EntryType::Folder;
  }

  Result<> look_at_index(std::string_view path, const Opened& file) {
    if (file.size > kLargestIndex) return {};
    const auto text = bytes_of_file(file.fd.get(), file.size).read(0, file.size);
    if (!text) return fail_errno(errno, "reading " + tree_.shown(path));
    const auto names = weights_named_in(*text);
    if (!names) {
      add(path, "it is not JSON");
      return {};
    }
    const auto is_absent = [&](const std::string& name) { return !is_there(beside(path, name)); };
    const auto absent = std::ranges::find_if(*names, is_absent);
    if (absent != names->end() && !std::ranges::all_of(*names, is_absent))
      add(path, "it names " + printable(*absent) + ", which is not there");
    return {};
  }

  Result<> look_at_weights(std::string_view path, const Opened& file) {
    const FileBytes bytes = bytes_of_file(file.fd.get(), file.size);
    if (file.size <= kLargestPointer) {
      const auto text = bytes.read(0, file.size);
      if (text && lfs_pointer(*text)) {
        add(path, "it is a pointer of git-lfs in place of the file, which `git lfs pull` brings");
        return {};
      }
    }
    const bool is_gguf = path.ends_with(kGguf);
    if (!is_gguf && !path.ends_with(kSafetensors)) return {};
    const auto weights = is_gguf ? look_at_gguf(bytes) : look_at_safetensors(bytes);
    if (!weights) return fail_with(weights.error(), "reading " + tree_.shown(path));
    if (!weights->fault.empty()) add(path, weights->fault);
    if (weights->parts > 1) look_for_parts(path, *weights);
    return {};
  }

  void look_for_parts(std::string_view path, const Weights& weights) {
    auto name = part_name_of(path);
    if (!name || name->part != weights.part || name->parts != weights.parts) {
      add(path, "it is part " + std::to_string(weights.part) + " of " + std::to_string(weights.parts) +
                    ", and its name does not say so, by which the other parts are found");
      return;
    }
    if (!parts_.insert(name_of_part(*name, 1)).second) return;
    for (unsigned part = 1; part <= name->parts; ++part) {
      const std::string wanted = name_of_part(*name, part);
      if (is_there(wanted)) continue;
      add(path, "it is part " + std::to_string(weights.part) + " of " + std::to_string(weights.parts) +
                    ", and " + printable(name_of(wanted)) + " is not there");
      return;
    }
  }
};

}  // namespace

bool is_weights(std::string_view path) {
  return std::ranges::any_of(kWeights, [&](auto end) { return path.ends_with(end); });
}

Result<std::vector<ModelFault>> find_model_faults(const Tree& tree, const Entries& entries,
                                                  const StopFlag& stop) {
  Search search(tree, entries);
  for (const Entry& entry : entries) {
    if (stop) return fail(Errc::Cancelled, "looking at the files of " + tree.shown("") + ": interrupted");
    if (search.faults.size() >= kMostFaults) break;
    if (auto looked = search.look_at(entry); !looked) return looked.take_error();
  }
  return std::move(search.faults);
}

Result<> check_structure(const Tree& tree, const Entries& entries, const StopFlag& stop) {
  constexpr std::size_t kShown = 5;
  const auto faults = find_model_faults(tree, entries, stop);
  if (!faults) return faults.take_error();
  std::vector<std::string> wrong;
  for (const ModelFault& fault : *faults) wrong.push_back(printable(fault.path) + ": " + fault.what);
  if (wrong.empty()) return {};
  wrong.resize(std::min(wrong.size(), kShown));
  return fail(Errc::Mismatch, tree.shown("") + " holds a model that is not whole: " + join(wrong, "; "),
              "download these files to the source again");
}

Result<std::set<std::string>> weights_named_in(std::string_view index) {
  const auto object = parse_json_object(index);
  if (!object) return object.take_error();
  std::set<std::string> names;
  const json::object* map = get_object(*object, "weight_map");
  for (const auto& member : map == nullptr ? json::object() : *map) {
    if (const auto* name = member.value().if_string(); name != nullptr)
      names.emplace(name->data(), name->size());
  }
  return names;
}

bool names_all_files(const ModelRecord& record, const Entries& entries) {
  const std::string model = record.entry_point.empty() ? "" : record.entry_point + "/";
  std::set<std::string_view> named;
  for (const PublishedFile& file : record.digests) {
    if (file.path.find('\n') != std::string::npos || !file.path.starts_with(model)) return false;
    named.insert(file.path);
  }
  const bool is_hub = record.entry_point == snapshot_path(record.hub_folder, record.revision);
  const bool is_ollama = std::ranges::all_of(named, is_blob_of_ollama);
  if (named.empty() || (!is_hub && !record.hub_folder.empty())) return false;
  for (const Entry& entry : entries) {
    const std::string_view path = entry.path.view();
    if (entry.type != EntryType::File || named.erase(path) > 0) continue;
    const bool is_note =
        (is_hub && is_note_of_hub(path, record.hub_folder)) || (is_ollama && is_manifest_of_ollama(path));
    if (!is_note) return false;
  }
  return named.empty();
}

}  // namespace spark::staging
