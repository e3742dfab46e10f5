#include "staging/cache/folder/named_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "staging/manifest/names.hpp"

namespace spark::staging {

namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path named_file(const CacheFolder& folder, const std::string& dataset, std::uint64_t generation) {
  const std::size_t colon = dataset.find(':');
  if (colon == std::string::npos) return {};
  const fs::path name = fs::path(dataset.substr(colon + 1)).filename();
  return folder.named() / folder_name(dataset) / std::to_string(generation) / name;
}

void name_file(const CacheFolder& folder, const std::string& dataset, std::uint64_t generation) {
  const fs::path link = named_file(folder, dataset, generation);
  const fs::path copy = folder.place(dataset, generation).path();
  struct stat info {};
  if (link.empty() || ::lstat(copy.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  const fs::path target = fs::path("../../..") / copy.lexically_relative(folder.path());
  ::mkdir(link.parent_path().parent_path().c_str(), kEntered);
  ::mkdir(link.parent_path().c_str(), kEntered);
  std::error_code error;  // it may be there
  fs::create_symlink(target, link, error);
}

void remove_name(const CacheFolder& folder, const std::string& dataset, std::uint64_t generation) {
  const fs::path link = named_file(folder, dataset, generation);
  if (link.empty() || (::unlink(link.c_str()) != 0 && errno != ENOENT)) return;
  ::rmdir(link.parent_path().c_str());
  ::rmdir(link.parent_path().parent_path().c_str());  // "not empty": of other generations
}

}  // namespace spark::staging
