#include "tests/histories/copies/world/uses.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/histories/copies/host/copies_on_drive.hpp"
#include "tests/histories/copies/host/files.hpp"

namespace spark::histories::copies {
namespace {

namespace fs = std::filesystem;

}  // namespace

Use& Uses::begin(const std::string& dataset, const fs::path& path) {
  Use use;
  use.name = "job " + std::to_string(++begun_);
  use.dataset = dataset;
  use.path = path;
  use.faults = scene_.fate.faulty_leases;
  use.can_be_recorded = !scene_.trouble.is_state_full || !scene_.trouble.is_drive_full;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(path, error)) {
    if (!entry.is_regular_file(error)) continue;
    const std::string name = entry.path().lexically_relative(path);
    use.files[name] = inode_of(entry.path());
    // The same bit may flip again: the file is right then, which is no change by the product.
    const Damage* damage = scene_.rot.of(use.files.at(name));
    use.bytes[name] = damage == nullptr ? bytes_of(entry.path()) : damage->right;
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

// A lease whose worker failed, for which there was no space on any drive, or whose catalog is gone, ends with
// the daemon that gave it.
void Uses::daemon_ended() {
  for (Use& use : uses_) {
    const bool is_kept = use.faults == scene_.fate.faulty_leases && use.can_be_recorded;
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
  std::erase_if(uses_, [this](const Use& use) { return !is_well(use); });
}

// False: it has lost its files, which was noted.
bool Uses::is_well(const Use& use) {
  if (use.lease.empty() && use.open.empty()) return true;
  const std::string who = use.name + ", which uses " + use.dataset;
  for (const auto& [name, inode] : use.files) {
    const fs::path file = use.path / name;
    if (inode_of(file) != inode) {
      const bool is_leased = !use.lease.empty();
      const std::string what =
          who + (is_leased ? " with a lease" : " with open files") + ", has lost " + name;
      if (is_leased) {
        scene_.violate("leased-copy-" + remover(use), what);
      } else {
        scene_.note(Rarity::Usual, "open-copy-" + remover(use), what);
      }
      return false;
    }
    if (!is_damaged(use, name) && bytes_of(file) != use.bytes.at(name)) {
      scene_.violate("used-copy-changed", who + ", finds other bytes in " + name);
      return false;
    }
  }
  return true;
}

}  // namespace spark::histories::copies
