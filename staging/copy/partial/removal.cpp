#include "staging/copy/partial/removal.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

constexpr char kRemoved[] = ".spark-removed";

}  // namespace

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening folder " + printable(folder.native()));
  return names_in(std::move(fd), printable(folder.native()));
}

Result<std::string> rename_for_removal(const std::filesystem::path& folder, const std::string& name) {
  std::string away = companion_name(name, kRemoved);
  if (auto removed = remove_tree(folder, away); !removed) return removed.take_error();
  if (auto renamed = rename_to_new(folder / name, folder / away); !renamed) return renamed.take_error();
  if (auto flushed = flush_folder(folder); !flushed) return flushed.take_error();
  return away;
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
