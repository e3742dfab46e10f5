#include "staging/models/git_index.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/text.hpp"
#include "staging/models/model_files.hpp"
#include "staging/models/sha256.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kLargestGitIndex = 256 * kMiB, kLargestAttributes = kMiB;
constexpr std::size_t kFixed = 62, kSha1Bytes = 20;

// Big endian; 0 beyond the end.
std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < size && at + i < bytes.size(); ++i)
    number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

// The bytes of the last path that version 4 leaves out, as git's offset encoding. No value at the end.
std::optional<std::size_t> left_out(std::string_view bytes, std::size_t& at) {
  std::size_t number = 0;
  for (bool is_first = true;; is_first = false) {
    if (at >= bytes.size() || number > kLargestGitIndex) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    number = is_first ? byte & 127U : ((number + 1) << 7) | (byte & 127U);
    if ((byte & 128U) == 0) return number;
  }
}

// Git LFS writes exactly this.
std::string pointer_to(const std::string& sha256, Bytes size) {
  return "version https://git-lfs.github.com/spec/v1\noid sha256:" + sha256 + "\nsize " +
         std::to_string(size) + "\n";
}

// The objects that Git LFS has here, by the SHA-1 of their pointers.
std::map<std::string, PublishedFile> lfs_objects(const Tree& tree, const std::string& folder) {
  std::map<std::string, PublishedFile> by_pointer;
  std::vector<std::pair<std::string, int>> folders{{join_path(folder, ".git/lfs/objects"), 0}};
  while (!folders.empty()) {
    const auto [path, depth] = std::move(folders.back());
    folders.pop_back();
    UniqueFd opened = open_beneath(tree, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const auto names = opened ? names_in(std::move(opened), tree.shown(path)) : std::vector<std::string>();
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      if (depth < 2) {
        folders.emplace_back(join_path(path, name), depth + 1);
        continue;
      }
      const UniqueFd file = open_beneath(tree, join_path(path, name), O_PATH | O_NOFOLLOW);
      struct stat info {};
      if (!is_hex(name, kSha256Digits) || !file || ::fstat(file.get(), &info) != 0) continue;
      const auto size = static_cast<Bytes>(info.st_size);
      by_pointer[git_sha1_of(pointer_to(name, size))] = {"", size, name, "its object of Git LFS"};
    }
  }
  return by_pointer;
}

// The patterns of .gitattributes that Git LFS has added.
std::vector<std::string> lfs_patterns(const Tree& tree, const std::string& folder) {
  std::vector<std::string> patterns;
  const auto text = read_small(tree, join_path(folder, ".gitattributes"), kLargestAttributes);
  for (const std::string& line : split(text && *text ? **text : "", '\n')) {
    const std::size_t end = line.find_first_of(" \t");
    if (line.find("filter=lfs", end == std::string::npos ? line.size() : end) != std::string::npos)
      patterns.push_back(line.substr(0, end));
  }
  return patterns;
}

}  // namespace

Result<std::map<std::string, std::string>> parse_git_index(std::string_view index) {
  const auto broken = [] { return fail(Errc::Mismatch, "it is no index of git"); };
  const std::uint32_t version = number_at(index, 4, 4), count = number_at(index, 8, 4);
  if (!index.starts_with("DIRC") || version < 2 || version > 4) return broken();
  std::map<std::string, std::string> all;
  std::string last;
  std::size_t at = 12;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t begin = at;
    if (index.size() < begin + kFixed) return broken();
    const std::uint32_t mode = number_at(index, begin + 24, 4), flags = number_at(index, begin + 60, 2);
    const std::string sha1 = hex_of(std::as_bytes(std::span(index.substr(begin + 40, kSha1Bytes))));
    at = begin + kFixed + ((flags & 0x4000U) != 0 ? 2 : 0);
    std::string path;
    if (version == 4) {
      const auto without = left_out(index, at);
      if (!without || *without > last.size()) return broken();
      path = last.substr(0, last.size() - *without);
    }
    const std::size_t end = index.find('\0', std::min(at, index.size()));
    if (end == std::string_view::npos) return broken();
    path += index.substr(at, end - at);
    // Before version 4, with 1 to 8 zero bytes up to a multiple of 8.
    at = version == 4 ? end + 1 : begin + (end - begin + 8) / 8 * 8;
    const bool is_file = mode >> 12 == 8, is_merged = (flags >> 12 & 3U) == 0;
    if (is_file && is_merged) all[path] = sha1;
    last = std::move(path);
  }
  return all;
}

std::map<std::string, PublishedFile> files_of_checkout(const Tree& tree, const std::string& folder) {
  std::map<std::string, PublishedFile> all;
  const auto text = read_small(tree, join_path(folder, ".git/index"), kLargestGitIndex);
  const auto index = text && *text ? parse_git_index(**text) : std::map<std::string, std::string>();
  if (!index) return all;
  const auto objects = lfs_objects(tree, folder);
  const auto patterns = lfs_patterns(tree, folder);
  for (const auto& [path, sha1] : *index) {
    if (const auto object = objects.find(sha1); object != objects.end()) {
      all[path] = object->second;
    } else if (!matches(patterns, path) || patterns.empty()) {
      all[path] = {"", 0, sha1, "git's index"};
    }
    if (const auto one = all.find(path); one != all.end()) one->second.path = path;
  }
  return all;
}

}  // namespace spark::staging
