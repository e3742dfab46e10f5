#include "nvmetcp/host_identity.hpp"

#include <cctype>
#include <string_view>

#include "base/text.hpp"
#include "nvmetcp/validate.hpp"

namespace spark::nvmetcp {
namespace {

constexpr std::string_view kUuidNqn = "nqn.2014-08.org.nvmexpress:uuid:";
constexpr const char* kHowToMake =
    "`sudo spark-stage host new-identity` creates /etc/nvme/hostnqn and hostid; never copy them to another "
    "host";
constexpr const char* kNqnFile = "etc/nvme/hostnqn";
constexpr const char* kIdFile = "etc/nvme/hostid";

Result<std::string> read_identity_file(const SystemRoot& root, const char* name) {
  const auto path = root / name;
  auto line = read_line_file(path);
  if (!line && line.error().kind != Errc::NotFound) {
    return fail_with(std::move(line.error()), "reading this host's NVMe identity");
  }
  if (!line || line->empty()) {
    return fail(Errc::NotFound, printable(path.native()) + (line ? " is empty" : " is missing"), kHowToMake);
  }
  return line;
}

Result<> check_host_nqn(const std::string& nqn) {
  if (auto valid = validate_nqn(nqn, "/etc/nvme/hostnqn"); !valid) {
    valid.error().hint = kHowToMake;
    return valid;
  }
  if (!nqn.starts_with(kUuidNqn)) return {};
  const std::string_view uuid = std::string_view(nqn).substr(kUuidNqn.size());
  if (!is_uuid(uuid)) {
    return fail(Errc::Invalid, "/etc/nvme/hostnqn " + printable(nqn) + " does not end in a UUID", kHowToMake);
  }
  if (is_zero_uuid(uuid)) {
    return fail(Errc::Invalid,
                "/etc/nvme/hostnqn " + printable(nqn) +
                    " has a UUID of zeros: every host with such firmware would be the same one to a target",
                "`sudo spark-stage host new-identity` makes one of this host's own");
  }
  return {};
}

}  // namespace

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const auto c = static_cast<unsigned char>(text[i]);
    if (dash ? c != '-' : std::isxdigit(c) == 0) return false;
  }
  return true;
}

bool is_zero_uuid(std::string_view uuid) {
  return uuid.find_first_not_of("0-") == std::string_view::npos;
}

Result<HostIdentity> read_host_identity(const SystemRoot& root) {
  auto nqn = read_identity_file(root, kNqnFile);
  if (!nqn) return nqn.take_error();
  auto id = read_identity_file(root, kIdFile);
  if (!id) return id.take_error();
  if (auto valid = check_host_nqn(*nqn); !valid) return valid.take_error();
  if (!is_uuid(*id) || is_zero_uuid(*id)) {
    return fail(Errc::Invalid,
                "/etc/nvme/hostid " + printable(*id) + (is_uuid(*id) ? " is all zero" : " is not a UUID"),
                kHowToMake);
  }
  return HostIdentity{std::move(*nqn), lower(*id)};
}

std::optional<std::string> identity_doubt(const HostIdentity& host) {
  if (!host.nqn.starts_with(kUuidNqn)) return std::nullopt;
  const std::string uuid = lower(std::string_view(host.nqn).substr(kUuidNqn.size()));
  if (uuid == host.id) return std::nullopt;
  return "/etc/nvme/hostid " + host.id + " is not the UUID in /etc/nvme/hostnqn (" + uuid +
         "): connections work, but tools that derive one from the other take this host for two; while "
         "nothing "
         "is connected, `echo " +
         uuid + " > /etc/nvme/hostid` makes them one";
}

Result<HostIdentity> fresh_host_identity(const SystemRoot& root) {
  auto uuid = fresh_uuid(root);
  if (!uuid) return uuid.take_error();
  return HostIdentity{std::string(kUuidNqn) + *uuid, *uuid};
}

Result<std::vector<std::string>> write_host_identity(const SystemRoot& root, const HostIdentity& host) {
  const std::string doing = "writing this host's identity";
  std::error_code error;
  std::filesystem::create_directories(root / "etc/nvme", error);
  if (error) return fail_errno(error.value(), doing + ": making /etc/nvme");
  std::vector<std::string> kept;
  for (const char* name : {kNqnFile, kIdFile}) {
    const auto before = read_file(root / name);
    if (!before && before.error().kind == Errc::NotFound) continue;
    if (!before) return fail_with(before.error(), doing);
    const std::string copy = std::string(name) + ".old";
    if (auto saved = write_file_atomically(root / copy, *before); !saved)
      return fail_with(saved.error(), doing);
    kept.push_back("/" + copy);
  }
  // Cut off between the two, they differ, which doctor says.
  for (const auto& [name, value] : {std::pair{kIdFile, host.id}, std::pair{kNqnFile, host.nqn}}) {
    if (auto written = write_file_atomically(root / name, value + "\n"); !written)
      return fail_with(written.error(), doing);
  }
  return kept;
}

Result<bool> make_missing_host_identity(const SystemRoot& root) {
  const std::string doing = "making this host's identity";
  const auto nqn = read_line_file(root / kNqnFile);
  if (nqn && !nqn->empty()) return false;
  if (!nqn && nqn.error().kind != Errc::NotFound) return fail_with(nqn.error(), doing);
  const auto fresh = fresh_host_identity(root);
  if (!fresh) return fail_with(fresh.error(), doing);
  if (const auto kept = write_host_identity(root, *fresh); !kept) return kept.take_error();
  return true;
}

}  // namespace spark::nvmetcp
