#include "tests/histories/copies/world/uses.hpp"

#include <fcntl.h>
#include <sys/stat.h>


#include "tests/histories/copies/world/copies_on_drive.hpp"
#include "tests/histories/copies/world/files.hpp"

namespace spark::histories::copies {
namespace {

namespace fs = std::filesystem;

}  // namespace

Use& Uses::begin(const std::string& dataset, const fs::path& path) {
  Use use;
  use.name = "job " + std::to_string(++begun_);
  use.dataset = dataset;
  use.path = path;
  use.faults = scene_.fate.faulty;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(path, error)) {
    if (!entry.is_regular_file(error)) continue;
    const std::string name = entry.path().lexically_relative(path);
    use.files[name] = inode_of(entry.path());
    use.bytes[name] = bytes_of(entry.path());
  }
  return uses_.emplace_back(std::move(use));
}

void Uses::open_files(Use& use, std::size_t most) {
  for (const auto& [name, inode] : use.files) {
    if (most-- == 0) return;
    UniqueFd file(::open((use.path / name).c_str(), O_RDONLY | O_CLOEXEC));
    if (file) use.open.push_back(std::move(file));
  }
}

void Uses::end(std::size_t number) {
  uses_.erase(uses_.begin() + static_cast<std::ptrdiff_t>(number));
}

// A lease that could not be written, or whose catalog is gone, ends with the daemon that gave it.
void Uses::daemon_ended() {
  for (Use& use : uses_) {
    const bool is_kept = use.faults == scene_.fate.faulty;
    if (!is_kept) use.lease.clear();
  }
}

std::string Uses::remover(const Use& use) const {
  const std::uint64_t generation = std::strtoull(use.path.filename().c_str(), nullptr, 10);
  if (newest_generation(use.dataset) > generation) return "superseded";
  return evicting_.contains(use.dataset) ? "evicted" : "room";
}

bool Uses::is_damaged(const Use& use, const std::string& file) const {
  return scene_.rot.of(use.files.at(file)) != nullptr;
}

void Uses::check() {
  for (const Use& use : uses_) check_one(use);
}

void Uses::check_one(const Use& use) {
  if (use.lease.empty() && use.open.empty()) return;
  const std::string who = use.name + ", which uses " + use.dataset;
  for (const auto& [name, inode] : use.files) {
    const fs::path file = use.path / name;
    const ino_t now = inode_of(file);
    if (now != inode) {
      const std::string kind = use.lease.empty() ? "open-copy-" : "leased-copy-";
      return scene_.violate(kind + remover(use), who + (use.lease.empty() ? " with open files" : " with a lease") +
                                                     ", has lost " + name);
    }
    if (!is_damaged(use, name) && bytes_of(file) != use.bytes.at(name))
      return scene_.violate("used-copy-changed", who + ", finds other bytes in " + name);
  }
}

}  // namespace spark::histories::copies
