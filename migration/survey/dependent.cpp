#include "migration/survey/dependent.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"

namespace spark::host {
namespace {

// "lowerdir=/a:/b" of an overlay, "/a:/b" of mergerfs.
bool names_folder(std::string text, const std::string& mount) {
  std::ranges::replace(text, '=', ':');
  const auto parts = split(text, ':');
  return std::ranges::any_of(parts, [&](const std::string& part) { return is_at_or_below(part, mount); });
}

}  // namespace

bool is_bind(const FstabLine& line) {
  return mounts::has_option(line.options, "bind") || mounts::has_option(line.options, "rbind");
}

// systemd makes an automount at boot as it makes a mount: without its folder it fails, and an automount of a
// bind shows the empty folder. Only an image is opened later, at the first access.
std::string need_at_boot(const FstabLine& line, const std::string& mount) {
  if (mounts::has_option(line.options, "noauto")) return {};
  const bool is_image = is_at_or_below(line.source, mount) && !is_bind(line);
  const bool is_later = is_image && !is_at_or_below(line.mount, mount) &&
                        mounts::has_option(line.options, "x-systemd.automount") &&
                        mounts::has_option(line.options, "nofail");
  return is_later ? "" : need_of(line, mount);
}

std::string need_of(const FstabLine& line, const std::string& mount) {
  if (is_at_or_below(line.source, mount))
    return is_bind(line) ? printable(line.source) + " is a folder of" : printable(line.source) + " lies on";
  if (line.mount != mount && is_at_or_below(line.mount, mount)) return printable(line.mount) + " lies in";
  // Of others, such as sshfs, it may be a folder of another host.
  constexpr std::array<std::string_view, 4> kUnions = {"overlay", "mergerfs", "unionfs", "aufs"};
  if (std::ranges::none_of(kUnions, [&](auto kind) { return line.type.find(kind) != std::string::npos; }))
    return {};
  const auto options = split(line.options, ',');
  const bool uses = names_folder(line.source, mount) || std::ranges::any_of(options, [&](const auto& option) {
                      return names_folder(option, mount);
                    });
  return uses ? printable(line.mount) + " is made of folders of" : "";
}

}  // namespace spark::host
