#include "daemon/workers/missing_source.hpp"

#include "base/text.hpp"

namespace spark::workers {
namespace {

bool is_present(const std::filesystem::path& path) {
  std::error_code unreadable;
  const auto status = std::filesystem::symlink_status(path, unreadable);
  return status.type() != std::filesystem::file_type::not_found;
}

}  // namespace

Error with_next_step(Error error, const std::filesystem::path& path, PathFrom from) {
  if (error.kind != Errc::NotFound || !error.hint.empty() || is_present(path)) return error;
  std::filesystem::path folder = path.parent_path();
  while (folder.has_relative_path() && !is_present(folder)) folder = folder.parent_path();
  error.hint = std::string(from == PathFrom::Config ? "check the dataset's path in the config; " : "") +
               "`ls " + printable(folder.native()) + "` lists its contents";
  return error;
}

}  // namespace spark::workers
