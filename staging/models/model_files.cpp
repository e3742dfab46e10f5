#include "staging/models/model_files.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/text.hpp"

namespace spark::staging {

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_folder(const Tree& tree, const std::string& path) {
  return static_cast<bool>(open_beneath(tree, path, O_PATH | O_DIRECTORY | O_NOFOLLOW));
}

Result<std::optional<std::string>> read_small(const Tree& tree, const std::string& path, std::size_t most) {
  const UniqueFd file = open_beneath(tree, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) return tree.failed(errno, "reading", path);
  if (!S_ISREG(info.st_mode) || static_cast<std::size_t>(info.st_size) > most)
    return fail(Errc::Mismatch,
                tree.shown(path) + " is no file, or is too large for one that describes a model");
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  if (got < 0) return tree.failed(errno, "reading", path);
  text.resize(static_cast<std::size_t>(got));
  return std::optional(std::move(text));
}

bool matches(const std::vector<std::string>& patterns, const std::string& path) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return ::fnmatch(pattern.c_str(), path.c_str(), 0) == 0 ||
                  ::fnmatch(pattern.c_str(), std::string(name_of(path)).c_str(), 0) == 0;
         });
}

void drop_empty_folders(Entries& entries, const std::string& below) {
  std::set<std::string_view> used;
  for (const Entry& entry : entries) {
    if (entry.type == EntryType::Folder) continue;
    const std::string_view path = entry.path;
    for (std::size_t end = path.rfind('/'); end != std::string_view::npos && end > 0;
         end = path.rfind('/', end - 1))
      used.insert(path.substr(0, end));
  }
  std::erase_if(entries, [&](const Entry& entry) {
    const std::string_view path = entry.path;
    return entry.type == EntryType::Folder && !path.empty() && path.starts_with(below) &&
           !used.contains(path);
  });
}

}  // namespace spark::staging
