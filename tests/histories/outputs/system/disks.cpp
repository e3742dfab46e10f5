#include "tests/histories/outputs/system/disks.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include "base/file.hpp"
#include "tests/histories/outputs/system/libc.hpp"

namespace spark::histories {
namespace {

namespace fs = std::filesystem;

constexpr char kRoot[] = "/mnt";

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_proc(const char* file, const std::string& text) {
  std::ofstream(file) << text;
}

// Root of this program's own namespaces, mapped to the user who runs it.
Result<> become_root() {
  const auto user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return fail_errno(errno, "making a user namespace", "run it as root, or permit user namespaces");
  write_proc("/proc/self/setgroups", "deny");
  write_proc("/proc/self/uid_map", "0 " + user + " 1");
  write_proc("/proc/self/gid_map", "0 " + group + " 1");
  libc().is_user_mapped = true;
  return {};
}

}  // namespace

Content content_of(const fs::path& path) {
  Content content;
  std::error_code error;
  const auto add = [&](const fs::path& file, const std::string& name) {
    const fs::file_type type = fs::symlink_status(file, error).type();
    if (type == fs::file_type::symlink) {
      content[name] = "-> " + fs::read_symlink(file, error).native();
    } else if (type == fs::file_type::directory) {
      content[name + "/"] = "";
    } else if (type == fs::file_type::regular) {
      content[name] = text_of(file);
    }
    return type == fs::file_type::directory;
  };
  if (!add(path, "")) return content;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    (void)add(entry->path(), entry->path().native().substr(path.native().size() + 1));
  return content;
}

Listing listing_of(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename();
    if (!name.starts_with('.')) listing[std::move(name)] = content_of(entry->path());
  }
  return listing;
}

std::string link_at(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? "" : target.native();
}

Result<> prepare_disks() {
  if (::geteuid() != 0) {
    if (auto root = become_root(); !root) return root;
  } else if (::unshare(CLONE_NEWNS) != 0) {
    return fail_errno(errno, "making a mount namespace");
  }
  const bool is_ours = ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("histories", kRoot, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") == 0;
  if (!is_ours) return fail_errno(errno, std::string("mounting a file system in memory at ") + kRoot);
  ::umask(022);
  file_times().find_out_granularity(kRoot);
  return {};
}

fs::path empty_disk(const std::string& name, std::size_t megabytes) {
  static std::set<std::string> mounted;
  const fs::path path = fs::path(kRoot) / name;
  std::error_code error;
  if (mounted.contains(name)) {
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
      fs::remove_all(entry->path(), error);
    return path;
  }
  const std::string options = "mode=755,size=" + std::to_string(megabytes) + "m";
  fs::create_directory(path, error);
  if (::mount(name.c_str(), path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    throw std::system_error(errno, std::generic_category(), "mounting " + path.native());
  mounted.insert(name);
  return path;
}

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

void append_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::app) << text;
}

}  // namespace spark::histories
