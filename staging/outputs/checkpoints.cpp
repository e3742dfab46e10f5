#include "staging/outputs/checkpoints.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/times.hpp"
#include "staging/files/tree.hpp"
#include "staging/outputs/removed.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

constexpr char kLatest[] = "latest";
constexpr std::size_t kMostOfAnIndex = 64 << 20;  // bytes

bool is_temporary(const std::string& name) {
  constexpr std::array<std::string_view, 4> kBegins = {".", "tmp-", "tmp_", "tmp."};
  constexpr std::array<std::string_view, 3> kEnds = {".tmp", ".incomplete", ".partial"};
  return std::ranges::any_of(kBegins, [&](auto begin) { return name.starts_with(begin); }) ||
         std::ranges::any_of(kEnds, [&](auto end) { return name.ends_with(end); });
}

bool is_pointer(const std::string& name) {
  return name == kLatest || name == "latest_checkpointed_iteration.txt";
}

void note(Checkpoint& checkpoint, const struct stat& info) {
  checkpoint.changed_ns =
      std::max({checkpoint.changed_ns, nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)});
  if (S_ISREG(info.st_mode)) checkpoint.bytes += static_cast<Bytes>(info.st_size);
}

// Sizes and times of everything in it. A file that disappears meanwhile is no error: the next call sees the
// rest.
Checkpoint look_at(const fs::path& path, const struct stat& root) {
  Checkpoint checkpoint{path.filename(), nanoseconds(root.st_mtim), 0, 0, ""};
  note(checkpoint, root);
  if (!S_ISDIR(root.st_mode)) return checkpoint;
  std::error_code error;
  fs::recursive_directory_iterator entries(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    struct stat info {};
    if (::lstat(entries->path().c_str(), &info) == 0) note(checkpoint, info);
  }
  return checkpoint;
}

bool is_file(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// The first of the names that is not a file of the folder; empty if all exist.
std::string first_missing(const fs::path& folder, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    if (!is_file(folder / name)) return name;
  }
  return "";
}

// The beginning of the digits that end at `end`; `end` if there are none.
std::size_t begin_of_number(std::string_view text, std::size_t end) {
  while (end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9') --end;
  return end;
}

// Finds "__RANK_NUMBER.distcp" in the bytes of a pickle, which contain its strings unchanged. The pickle is
// never loaded.
std::set<std::string> data_files_in(std::string_view metadata) {
  constexpr std::string_view kEnd = ".distcp";
  std::set<std::string> names;
  for (std::size_t end = metadata.find(kEnd); end != std::string_view::npos;
       end = metadata.find(kEnd, end + 1)) {
    const std::size_t number = begin_of_number(metadata, end);
    if (number == end || number == 0 || metadata[number - 1] != '_') continue;
    const std::size_t rank = begin_of_number(metadata, number - 1);
    if (rank == number - 1 || rank < 2 || metadata.substr(rank - 2, 2) != "__") continue;
    names.emplace(metadata.substr(rank - 2, end + kEnd.size() - (rank - 2)));
  }
  return names;
}

std::string why_not_dcp(const fs::path& path) {
  const auto metadata = read_file(path / ".metadata", kMostOfAnIndex);
  if (!metadata) return "it has no .metadata yet";
  const auto names = data_files_in(*metadata);
  if (names.empty()) return "its .metadata names no file";
  const std::string missing = first_missing(path, names);
  return missing.empty() ? "" : "its .metadata names " + missing + ", which is not there";
}

// The files of "weight_map" in an index such as model.safetensors.index.json.
Result<std::set<std::string>> weights_in(const fs::path& index) {
  const auto text = read_file(index, kMostOfAnIndex);
  if (!text) return text.take_error();
  const auto object = parse_json_object(*text);
  if (!object) return object.take_error();
  std::set<std::string> names;
  const json::object* map = get_object(*object, "weight_map");
  for (const auto& member : map == nullptr ? json::object() : *map) {
    if (const auto* name = member.value().if_string(); name != nullptr)
      names.emplace(name->data(), name->size());
  }
  return names;
}

std::string why_not_hugging_face(const fs::path& path) {
  if (!is_file(path / "trainer_state.json")) return "it has no trainer_state.json yet";
  std::error_code error;
  for (fs::directory_iterator files(path, error); !error && files != fs::directory_iterator();
       files.increment(error)) {
    const std::string name = files->path().filename();
    if (!name.ends_with(".index.json")) continue;
    const auto weights = weights_in(files->path());
    if (!weights) return name + " can't be read yet";
    if (const std::string missing = first_missing(path, *weights); !missing.empty())
      return name + " names " + printable(missing) + ", which is not there";
  }
  return "";
}

std::string why_not_deep_speed(const fs::path& path) {
  const auto latest = read_file(path.parent_path() / kLatest, 4096);
  if (!latest) return "there is no file `latest` yet";
  const std::string named(trim(*latest));
  const std::string name = path.filename();
  if (name != named && last_number_in(name) > last_number_in(named))
    return "`latest` still names " + printable(named);
  std::error_code error;
  for (fs::directory_iterator files(path, error); !error && files != fs::directory_iterator();
       files.increment(error)) {
    if (files->path().filename().string().ends_with("_states.pt")) return "";
  }
  return "it has no states of the model";
}

std::string why_not(const fs::path& path, const Completeness& completeness) {
  switch (completeness.rule) {
    case Completeness::Rule::Rename:
      return "";
    case Completeness::Rule::Dcp:
      return why_not_dcp(path);
    case Completeness::Rule::HuggingFace:
      return why_not_hugging_face(path);
    case Completeness::Rule::DeepSpeed:
      return why_not_deep_speed(path);
    case Completeness::Rule::Marker:
      return is_file(path / completeness.marker) ? ""
                                                 : "it has no " + printable(completeness.marker) + " yet";
  }
  return "";
}

}  // namespace

Result<std::vector<Checkpoint>> list_checkpoints(const fs::path& folder, const Completeness& completeness,
                                                 WallTime now, Duration settled) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  const std::int64_t settled_before = std::chrono::nanoseconds((now - settled).time_since_epoch()).count();
  std::vector<Checkpoint> checkpoints;
  for (const std::string& name : *names) {
    struct stat info {};
    if (is_temporary(name) || is_pointer(name) || ::lstat((folder / name).c_str(), &info) != 0 ||
        (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)))
      continue;
    Checkpoint checkpoint = look_at(folder / name, info);
    checkpoint.incomplete = why_not(folder / name, completeness);
    checkpoint.is_settling = checkpoint.incomplete.empty() && checkpoint.changed_ns > settled_before;
    if (checkpoint.is_settling) checkpoint.incomplete = "it changed a moment ago";
    checkpoints.push_back(std::move(checkpoint));
  }
  std::ranges::sort(checkpoints, [](const Checkpoint& a, const Checkpoint& b) {
    return a.mtime_ns != b.mtime_ns ? a.mtime_ns > b.mtime_ns : a.name > b.name;
  });
  return checkpoints;
}

Result<> remove_checkpoints(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (is_temporary(name) || name.empty() || name.find('/') != std::string::npos) continue;
    const fs::path away = folder / ("." + name + kRemoved);
    auto renamed = rename_to_new(folder / name, away);
    if (!renamed && renamed.error().kind != Errc::NotFound) return renamed;
  }
  const auto there = names_of(folder);
  if (!there) return there.take_error();
  for (const std::string& name : *there) {
    if (!name.starts_with('.') || !name.ends_with(kRemoved)) continue;
    if (auto removed = remove_tree(folder, name); !removed) return removed;
  }
  return {};
}

Result<> point_latest(const fs::path& folder, const std::string& name, PointerKind kind) {
  const fs::path latest = folder / kLatest;
  struct stat info {};
  const bool is_there = ::lstat(latest.c_str(), &info) == 0;
  const bool is_right_kind = kind == PointerKind::Link ? S_ISLNK(info.st_mode) : S_ISREG(info.st_mode);
  if (is_there && !is_right_kind) {
    return fail(Errc::Refused, printable(latest.native()) + " is the job's own",
                "`spark-stage latest` prints the newest complete checkpoint");
  }
  if (kind == PointerKind::File) return write_file_atomically(latest, name);
  std::error_code error;
  if (is_there && fs::read_symlink(latest, error) == name) return {};
  const fs::path fresh = folder / ".latest.spark-new";
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, "removing " + printable(fresh.native()));
  if (::symlink(name.c_str(), fresh.c_str()) != 0 || ::rename(fresh.c_str(), latest.c_str()) != 0)
    return fail_errno(errno, "making the link " + printable(latest.native()));
  return flush_folder(folder);
}

}  // namespace spark::staging
