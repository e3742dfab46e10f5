#include "nvmetcp/connect/temporary_discovery_controller.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.hpp"
#include "nvmetcp/names.hpp"

namespace spark::nvmetcp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNotes = "run/nvme/spark-stage";

// Distinguishes a controller from a later one of the same name; empty: it is gone.
std::string instance_of(const SystemRoot& root, const std::string& controller) {
  struct stat info {};
  if (::stat((root / "sys/class/nvme" / controller).c_str(), &info) != 0) return {};
  return std::to_string(info.st_ino);
}

bool lock(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0;
}

// Whether the note is of an existing controller, and no process has it locked. Other unlocked notes are
// deleted.
bool is_abandoned(const SystemRoot& root, const fs::path& note) {
  const UniqueFd fd(::open(note.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || !lock(fd.get())) return false;
  const std::string instance = instance_of(root, note.filename());
  if (!instance.empty() && read_line_file(note).value_or("") == instance) return true;
  ::unlink(note.c_str());
  return false;
}

}  // namespace

TemporaryDiscoveryController::TemporaryDiscoveryController(const SystemRoot& root,
                                                           const std::string& controller)
    : root_(root), note_(root / kNotes / controller) {
  std::error_code ignored;
  fs::create_directories(note_.parent_path(), ignored);
  ::unlink(note_.c_str());  // an earlier controller's of that name
  lock_.reset(::open(note_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock_) return;
  const std::string instance = instance_of(root, controller);
  const auto length = static_cast<ssize_t>(instance.size());
  if (lock(lock_.get()) && ::write(lock_.get(), instance.data(), instance.size()) == length) return;
  ::unlink(note_.c_str());
  lock_.reset();
}

TemporaryDiscoveryController::~TemporaryDiscoveryController() {
  if (lock_ && instance_of(root_, note_.filename()).empty()) ::unlink(note_.c_str());
}

std::vector<std::string> abandoned_discovery_controllers(const SystemRoot& root) {
  std::vector<std::string> abandoned;
  for (const fs::path& note : list_folder(root / kNotes)) {
    if (is_controller_name(note.filename().native()) && is_abandoned(root, note))
      abandoned.push_back(note.filename());
  }
  return abandoned;
}

}  // namespace spark::nvmetcp
