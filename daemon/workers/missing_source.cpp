#include "daemon/workers/missing_source.hpp"

#include <cerrno>

#include "base/access/named_path.hpp"
#include "base/text.hpp"

namespace spark::workers {
namespace {

// What is behind a user's link is not looked for: the asker may not be allowed to know.
bool is_present(const std::filesystem::path& path) {
  const auto named = open_named(path, Links::OfRootAlone);
  if (named) return true;
  const Error& error = named.error();
  return error.kind != Errc::NotFound && error.kind != Errc::Refused && error.number != ENOTDIR;
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
