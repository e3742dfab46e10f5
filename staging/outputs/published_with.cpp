#include "staging/outputs/published_with.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/files/times.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/outputs/published_copies.hpp"

namespace spark::staging {
namespace {

// If several hosts wrote identical files, the checkpoint has one host's file. Such files are small.
bool has_content_of(const Tree& tree, const Entry& here, const Entry& there) {
  if (there.type != EntryType::File || there.size != here.size || piece_count(here.size) > 1) return false;
  const UniqueFd file = open_beneath(tree, here.path, O_RDONLY);
  std::string content(here.size, '\0');
  if (!file || ::pread(file.get(), content.data(), content.size(), 0) != static_cast<ssize_t>(here.size))
    return false;
  Hasher hasher;
  hasher.add(content);
  return hasher.digest() == there.hash;
}

bool is_same_state(const Entry& here, const Entry& there) {
  return there.type == here.type && there.size == here.size && there.mtime_ns == here.mtime_ns &&
         there.target == here.target;
}

// `is_same`: of what is here and there.
Result<bool> has_all(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                     const StopFlag& stop, bool (*is_same)(const Entry& here, const Entry& there)) {
  auto published = earlier_copy({checkpoint.folder, checkpoint.name});
  if (!published) return published.take_error();
  if (!*published) return false;
  const auto tree = open_tree(source);
  if (!tree) return tree.take_error();
  const auto walked = walk(*tree, {}, stop);
  if (!walked) return walked.take_error();
  auto there = (*published)->next();
  for (const Entry& here : walked->entries) {
    while (there && there->path < here.path) there = (*published)->next();
    if (!there || there->path != here.path) return false;
    // A folder with several hosts' files has the mode of one of them.
    if (here.type == EntryType::Folder || is_same(here, *there)) continue;
    if (here.type != EntryType::File || !has_content_of(*tree, here, *there)) return false;
  }
  return true;
}

// A job's folder has another number each time: that is, all of a name, or what follows "job" or "slurm".
// Other numbers tell sources apart, as llama-7b and llama-70b.
std::string without_job_number(const std::string& name) {
  std::string rest = name;
  std::erase_if(rest, [](char c) { return c >= '0' && c <= '9'; });
  for (const char* job : {"", "job", "job-", "job_", "slurm-", "slurm_"})
    if (rest == job) return rest;
  return name;
}

// The folder of a source without jobs' numbers, and the job's own for one that holds its checkpoints.
std::string series_of(const std::filesystem::path& source) {
  const std::filesystem::path folder = source.parent_path();
  std::string name = folder.filename();
  if (name.starts_with('.') && name.ends_with(kHeldSuffix))
    name = name.substr(1, name.size() - sizeof kHeldSuffix);
  std::string series;
  for (const std::filesystem::path& one : folder.parent_path() / name)
    series += without_job_number(one) + "/";
  return series;
}

}  // namespace

Result<bool> is_published_with(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                               const StopFlag& stop) {
  return has_all(checkpoint, source, stop,
                 [](const Entry& here, const Entry& there) { return is_same_source(there, here); });
}

Result<bool> has_state_of(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                          const StopFlag& stop) {
  return has_all(checkpoint, source, stop, is_same_state);
}

Result<std::string> lost_file(const std::filesystem::path& path, const std::filesystem::path& source) {
  struct stat info {};
  if (::lstat(source.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return std::string();
  auto published = manifest_of_published({path.parent_path(), path.filename()});
  if (!published) return published.take_error();
  if (!*published) return std::string();
  const auto root = (*published)->next();
  // A deletion that left no file has the root alone. A file system gives the numbers of deleted files to new
  // ones, and a held checkpoint has its files alone.
  bool is_same_save =
      root && root->inode == info.st_ino && root->type == EntryType::Folder && totals_of(source).bytes == 0;
  std::string lost;
  while (const auto entry = (*published)->next()) {
    if (entry->type != EntryType::File) continue;
    const std::string name(std::string_view(entry->path));
    const bool is_there = ::lstat((source / name).c_str(), &info) == 0;
    is_same_save = is_same_save ||
                   (is_there && info.st_ino == entry->inode && nanoseconds(info.st_mtim) == entry->mtime_ns);
    if (!is_there && errno == ENOENT && lost.empty()) lost = name;
  }
  return is_same_save ? lost : "";
}

Result<> check_same_source(const std::filesystem::path& path, const std::filesystem::path& source) {
  const auto published = manifest_of_published({path.parent_path(), path.filename()});
  if (!published || !*published) return {};  // copy() refuses to replace what it can't identify
  const std::filesystem::path then = (*published)->header().source;
  std::error_code unknown;
  const bool is_same = then.filename() == source.filename() && series_of(then) == series_of(source);
  if (is_same || std::filesystem::equivalent(then, source, unknown)) return {};
  return fail(Errc::Refused, "a copy of " + printable(then.native()) + " is there",
              "choose another name; --accept-source replaces that copy");
}

}  // namespace spark::staging
