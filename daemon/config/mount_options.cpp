// The mount options that a user may add to a volume, and the reasons against the others.
#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "daemon/config/values.hpp"

namespace spark::config {
namespace {

constexpr std::string_view kFstab =
    "has a meaning in fstab only; the volume's own keys control when and how it is mounted";

enum class On { All, Nfs, Readers, Writers };

struct Refusal {
  On volumes;
  std::string_view options;  // each name between spaces; with any value after '='
  std::string_view why;
};

constexpr Refusal kRefusals[] = {
    {On::All, " loop offset sizelimit encryption journal_dev journal_path logdev rtdev ",
     "would mount another device than this volume's own"},
    {On::All, " bind rbind move remount helper uhelper ",
     "asks for another operation than mounting this volume"},
    {On::All, " auto noauto nofail user users nouser owner group comment ", kFstab},
    {On::Nfs, " bg ", "would report a mount that is not there yet; the daemon itself retries indefinitely"},
    {On::Readers, " rw ", "contradicts 'access: read-only'; a writer needs 'access: exclusive'"},
    {On::Writers, " ro ", "contradicts 'access: exclusive'; readers need 'access: read-only'"},
    {On::Writers, " noload norecovery ", "would write past a journal that was not replayed"},
};

const Refusal* refusal_of(std::string_view option, Access access, bool is_nfs) {
  const On by_access = access == Access::ReadOnly ? On::Readers : On::Writers;
  const std::string name = " " + std::string(option) + " ";
  const auto* found = std::ranges::find_if(kRefusals, [&](const Refusal& one) {
    const bool is_meant =
        one.volumes == On::All || one.volumes == by_access || (one.volumes == On::Nfs && is_nfs);
    return is_meant && one.options.find(name) != std::string_view::npos;
  });
  return found == std::end(kRefusals) ? nullptr : found;
}

}  // namespace

Result<std::string> parse_mount_option(std::string_view text, Access access, bool is_nfs) {
  const std::string quoted = "'" + printable(text) + "'";
  const auto usable = [](char c) { return c > ' ' && c <= '~' && c != ',' && c != '"' && c != '\\'; };
  if (text.empty() || text.size() > 512 || !std::all_of(text.begin(), text.end(), usable)) {
    return fail(Errc::Invalid, quoted + " is not one mount option",
                "one a list entry, as in [noatime, nodev]");
  }
  const std::string_view name = text.substr(0, text.find('='));
  // libmount handles these itself (folders, owners, dm-verity) or stores them as remarks for fstab.
  const bool userspace = name.starts_with("x-") || name.starts_with("X-") || name.starts_with("verity.");
  if (userspace) return fail(Errc::Invalid, "option " + quoted + " " + std::string(kFstab));
  if (const Refusal* refusal = refusal_of(name, access, is_nfs)) {
    return fail(Errc::Invalid, "option " + quoted + " " + std::string(refusal->why));
  }
  return std::string(text);
}

}  // namespace spark::config
