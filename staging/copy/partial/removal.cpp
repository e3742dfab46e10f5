#include "staging/copy/partial/removal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

constexpr char kRemoved[] = ".spark-removed";

// An NFS client may show a folder as it was a minute ago, or that it is not there, until the server is asked
// for it. False: it is not there.
bool ask_server_for(const std::filesystem::path& folder) {
  struct statx info {};
  const auto is_there = [&] {
    return ::statx(AT_FDCWD, folder.c_str(), AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &info) == 0;
  };
  if (is_there()) return true;
  const bool may_be_new = errno == ENOENT && folder.has_relative_path();
  return may_be_new && ask_server_for(folder.parent_path()) && is_there();
}

}  // namespace

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder) {
  ask_server_for(folder);
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening folder " + shown_path(folder));
  return names_in(std::move(fd), shown_path(folder));
}

Result<std::string> rename_for_removal(const std::filesystem::path& folder, const std::string& name) {
  std::string away = companion_name(name, kRemoved);
  if (auto removed = remove_tree(folder, away); !removed) return removed.take_error();
  if (auto renamed = rename_to_new(folder / name, folder / away); !renamed) return renamed.take_error();
  if (auto flushed = flush_folder(folder); !flushed) return flushed.take_error();
  return away;
}

Result<> check_deletable(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::recursive_directory_iterator entries;
  const auto is_ours = [](const fs::path& folder) {
    struct stat info {};
    return ::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid == ::geteuid() ||
           ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  };
  std::optional<fs::path> others = is_ours(path) ? std::nullopt : std::optional(path);
  if (!others && fs::is_directory(fs::symlink_status(path, error)))
    entries = fs::recursive_directory_iterator(path, error);
  for (; !others && !error && entries != end(entries); entries.increment(error))
    if (!is_ours(entries->path())) others = entries->path();
  if (error && error != std::errc::no_such_file_or_directory)
    return fail_errno(error.value(), "reading " + shown_path(path));
  if (!others) return {};
  return fail(Errc::Denied, shown_path(*others) + " is another user's, and this one may not empty it",
              "run the job as the owner of its folder, or change the owner with `sudo chown -R`");
}

Result<> finish_removals(const std::filesystem::path& folder) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  Result<> all;
  for (const std::string& name : *names) {
    if (!name.starts_with('.') || !name.ends_with(kRemoved)) continue;
    if (auto removed = remove_tree(folder, name); !removed && all) all = std::move(removed);
  }
  return all;
}

}  // namespace spark::staging
