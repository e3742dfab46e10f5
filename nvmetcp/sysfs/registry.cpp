#include "nvmetcp/sysfs/registry.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/file.hpp"
#include "base/text.hpp"
#include "nvmetcp/names.hpp"

namespace spark::nvmetcp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRegistry = "run/nvme/registry";
constexpr std::size_t kLongestName = 256;

// A folder that no reader takes for a controller's, beside theirs.
Result<fs::path> make_hidden_folder(const fs::path& registry, const std::string& controller) {
  std::string pattern = (registry / ("." + controller + "-XXXXXX")).native();
  if (::mkdtemp(pattern.data()) == nullptr)
    return fail_errno(errno, "making a folder in " + registry.native());
  (void)::chmod(pattern.c_str(), 0755);
  return fs::path(pattern);
}

void remove_quietly(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

// Readers see an entry whole or not at all: it leaves under another name before it is taken apart.
void take_away(const fs::path& registry, const std::string& controller) {
  const auto hidden = make_hidden_folder(registry, controller);
  if (!hidden) return;
  std::error_code ignored;
  fs::rename(registry / controller, *hidden, ignored);
  remove_quietly(*hidden);
}

// The stamp tells the udev rule whether a controller's removal came before this entry or after it.
Result<> fill(const SystemRoot& root, const fs::path& entry) {
  const auto stamp = read_line_file(root / "sys/kernel/uevent_seqnum");
  if (auto written = write_file_atomically(entry / "seqnum", stamp.value_or("0") + "\n"); !written)
    return written;
  return write_file_atomically(entry / "owner", std::string(kOwner) + "\n");
}

}  // namespace

std::string owner_of(const SystemRoot& root, const std::string& controller) {
  if (!is_controller_name(controller)) return {};
  const auto text = read_file(root / kRegistry / controller / "owner", kLongestName);
  return text ? printable(trim(*text)) : "";
}

Result<> claim(const SystemRoot& root, const std::string& controller) {
  if (!is_controller_name(controller)) {
    return fail(Errc::Invalid, "\"" + printable(controller) + "\" is not the name of a controller");
  }
  const std::string doing = "registering " + controller + " as owned by spark-stage";
  const fs::path registry = root / kRegistry;
  std::error_code error;
  fs::create_directories(registry, error);
  if (error) return fail_errno(error.value(), doing);
  const auto entry = make_hidden_folder(registry, controller);
  if (!entry) return fail_with(entry.error(), doing);
  if (auto filled = fill(root, *entry); !filled) {
    remove_quietly(*entry);
    return fail_with(filled.error(), doing);
  }
  if (fs::exists(registry / controller, error)) take_away(registry, controller);
  fs::rename(*entry, registry / controller, error);
  if (!error) return {};
  remove_quietly(*entry);
  return fail_errno(error.value(), doing);
}

void forget_earlier(const SystemRoot& root, const std::string& controller) {
  std::error_code none;
  const fs::path registry = root / kRegistry;
  if (is_controller_name(controller) && fs::exists(registry / controller, none))
    take_away(registry, controller);
}

void forget_gone(const SystemRoot& root) {
  std::vector<std::string> gone;
  for (const fs::path& entry : list_folder(root / kRegistry)) {
    const std::string name = entry.filename();
    std::error_code ignored;
    if (is_controller_name(name) && !fs::exists(root / "sys/class/nvme" / name, ignored))
      gone.push_back(name);
  }
  for (const std::string& name : gone) disown(root, name);
}

void disown(const SystemRoot& root, const std::string& controller) {
  if (owner_of(root, controller) == kOwner) take_away(root / kRegistry, controller);
}

}  // namespace spark::nvmetcp
