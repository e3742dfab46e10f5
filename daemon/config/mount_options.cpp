// The mount options that a user may add to a volume, and the reasons against the others.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "daemon/config/values.hpp"

namespace spark::config {
namespace {

struct Refusal {
  std::string_view option;
  std::string_view why;
};

constexpr std::string_view kAnotherDevice = "would mount something else than this volume's own device";
constexpr std::string_view kOtherOperation = "asks for another operation than mounting this volume";
constexpr std::string_view kFstab =
    "means something in fstab only; the volume's own keys say when and how it is mounted";

// By name, with any value after '='.
constexpr std::array kNever = {
    Refusal{"loop", kAnotherDevice},
    Refusal{"offset", kAnotherDevice},
    Refusal{"sizelimit", kAnotherDevice},
    Refusal{"encryption", kAnotherDevice},
    Refusal{"journal_dev", kAnotherDevice},
    Refusal{"journal_path", kAnotherDevice},
    Refusal{"logdev", kAnotherDevice},
    Refusal{"rtdev", kAnotherDevice},
    Refusal{"bind", kOtherOperation},
    Refusal{"rbind", kOtherOperation},
    Refusal{"move", kOtherOperation},
    Refusal{"remount", kOtherOperation},
    Refusal{"helper", kOtherOperation},
    Refusal{"uhelper", kOtherOperation},
    Refusal{"auto", kFstab},
    Refusal{"noauto", kFstab},
    Refusal{"nofail", kFstab},
    Refusal{"user", kFstab},
    Refusal{"users", kFstab},
    Refusal{"nouser", kFstab},
    Refusal{"owner", kFstab},
    Refusal{"group", kFstab},
    Refusal{"comment", kFstab},
};

constexpr std::array kNeverOnNfs = {
    Refusal{"bg", "would report a mount that is not there yet; the daemon itself retries for ever"},
};

constexpr std::array kNeverReadOnly = {
    Refusal{"rw", "contradicts 'access: read-only'; a writer needs 'access: exclusive'"},
};

constexpr std::array kNeverExclusive = {
    Refusal{"ro", "contradicts 'access: exclusive'; readers need 'access: read-only'"},
    Refusal{"noload", "would write past a journal that was not replayed"},
    Refusal{"norecovery", "would write past a journal that was not replayed"},
};

template <std::size_t N>
const Refusal* among(const std::array<Refusal, N>& refusals, std::string_view option) {
  const auto at = std::find_if(refusals.begin(), refusals.end(),
                               [&](const Refusal& refusal) { return refusal.option == option; });
  return at == refusals.end() ? nullptr : &*at;
}

const Refusal* refusal_of(std::string_view option, Access access, bool is_nfs) {
  if (const Refusal* never = among(kNever, option)) return never;
  if (is_nfs) {
    if (const Refusal* never = among(kNeverOnNfs, option)) return never;
  }
  return access == Access::ReadOnly ? among(kNeverReadOnly, option) : among(kNeverExclusive, option);
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
