// Parsed here and not by libmount: its reader also merges /run/mount/utab, takes a lock there, may resolve
// /dev/root by accessing the devices, and has no limit. The daemon's only thread can't afford any of these.
#include "base/kernel/mount_table.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace spark::mounts {
namespace {

constexpr std::ptrdiff_t kMaxLines = 100'000;
constexpr std::size_t kMaxBytes = 64 << 20;

// The next word of a line with single spaces between words.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// "36 35 98:0 /root /target options [tag:value …] - type source super_options"
std::optional<Mount> parse_line(std::string_view line) {
  const auto id = parse_number<int>(take_word(line)), parent_id = parse_number<int>(take_word(line));
  const std::string_view device = take_word(line);
  const std::size_t colon = std::min(device.find(':'), device.size());
  const auto major = parse_number<unsigned>(device.substr(0, colon));
  const auto minor = parse_number<unsigned>(device.substr(std::min(colon + 1, device.size())));
  if (!id || !parent_id || !major || !minor) return std::nullopt;
  Mount mount;
  mount.root = decode_octal(take_word(line));
  mount.id = *id;
  mount.parent_id = *parent_id;
  mount.device_number = makedev(*major, *minor);
  mount.target = decode_octal(take_word(line));
  mount.options = take_word(line);
  while (!line.empty() && take_word(line) != "-") {
  }
  mount.type = decode_octal(take_word(line));
  mount.source = decode_octal(take_word(line));
  mount.super_options = take_word(line);
  if (mount.super_options.empty()) return std::nullopt;
  return mount;
}

}  // namespace

std::vector<Mount> parse_mount_table(std::string_view text) {
  std::vector<Mount> table;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto mount = parse_line(text.substr(0, end))) table.push_back(std::move(*mount));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return table;
}

Result<std::vector<Mount>> read_mount_table(const SystemRoot& root, const std::string& process) {
  const auto text = read_file(root / ("proc/" + process + "/mountinfo"), kMaxBytes);
  if (!text) return fail_with(text.error(), "reading the mount table");
  if (std::count(text->begin(), text->end(), '\n') > kMaxLines) {
    return fail(Errc::Failed, "reading the mount table: more than 100,000 mounts",
                "a program mounts in a loop: `findmnt` shows the mounts");
  }
  return parse_mount_table(*text);
}

std::vector<const Mount*> stack_at(const std::vector<Mount>& table, const std::filesystem::path& target) {
  // Compared as text: with hundreds of mounts, comparing paths by components is most of the cost of a check.
  std::string wanted = target.native();
  if (wanted.find("//") != std::string::npos || wanted.find("/.") != std::string::npos) {
    wanted = target.lexically_normal().native();
  }
  if (wanted.size() > 1 && wanted.ends_with('/')) wanted.pop_back();
  std::vector<const Mount*> found, stack;
  for (const Mount& mount : table) {
    if (mount.target.native() == wanted) found.push_back(&mount);
  }
  // On some kernels the table is not in the order of stacking, but the parents are right: the top mount is no
  // other mount's parent.
  const auto is_top = [&](const Mount* mount) {
    return std::ranges::none_of(
        found, [&](const Mount* other) { return other != mount && other->parent_id == mount->id; });
  };
  // Of two that no parent relates, one is hidden by a mount over a parent folder.
  const auto is_reached = [&](const Mount* mount) {
    return is_top(mount) && covering(table, *mount) == nullptr;
  };
  auto next = found.size() < 2 ? found.end() : std::ranges::find_if(found, is_reached);
  if (next == found.end()) next = std::ranges::find_if(found, is_top);
  while (next != found.end() && stack.size() < found.size()) {
    stack.push_back(*next);
    next = std::ranges::find(found, stack.back()->parent_id, &Mount::id);
  }
  // One that is hidden by a mount over a parent folder, in which the top one was made.
  for (const Mount* hidden : found) {
    if (std::ranges::count(stack, hidden) == 0) stack.push_back(hidden);
  }
  return stack;
}

// A path is resolved from the root down. A mount below one of its folders that is attached to the same parent
// as `mount` was made after it: otherwise `mount` would be attached to that one.
const Mount* covering(const std::vector<Mount>& table, const Mount& mount) {
  const auto is_above = [](const std::string& folder, const std::string& path) {
    // A path begins at the process's root, so a mount on "/" hides nothing; a table's root may be its own
    // parent.
    return folder != "/" && path.size() > folder.size() && path.starts_with(folder) &&
           path[folder.size()] == '/';
  };
  const Mount* at = &mount;
  for (std::size_t steps = 0; at != nullptr && steps < table.size(); ++steps) {
    const auto over = std::ranges::find_if(table, [&](const Mount& other) {
      return other.parent_id == at->parent_id && is_above(other.target.native(), at->target.native());
    });
    if (over != table.end()) return &*over;
    const auto parent = std::ranges::find(table, at->parent_id, &Mount::id);
    at = parent == table.end() || parent->id == at->id ? nullptr : &*parent;
  }
  return nullptr;
}

const Mount* mounted_at(const std::vector<Mount>& table, const std::filesystem::path& target) {
  const auto stack = stack_at(table, target);
  return stack.empty() || covering(table, *stack.front()) != nullptr ? nullptr : stack.front();
}

const Mount* carrier_of(const std::vector<Mount>& table, const std::filesystem::path& path) {
  for (std::filesystem::path at = path; at.has_root_directory(); at = at.parent_path()) {
    if (const Mount* mount = mounted_at(table, at)) return mount;
    if (!at.has_relative_path()) break;
  }
  return nullptr;
}

bool has_option(std::string_view options, std::string_view name) {
  while (!options.empty()) {
    const std::string_view option = options.substr(0, options.find(','));
    if (option.substr(0, option.find('=')) == name) return true;
    options.remove_prefix(std::min(options.size(), option.size() + 1));
  }
  return false;
}

bool is_mount(const Mount& mount, const MountNumbers& numbers) {
  return mount.root == "/" && (numbers.id == 0 || numbers.id == mount.id) &&
         (numbers.device == 0 || numbers.device == mount.device_number);
}

bool is_read_only(const Mount& mount) {
  return has_option(mount.options, "ro") || has_option(mount.super_options, "ro");
}

}  // namespace spark::mounts
