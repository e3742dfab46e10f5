// What single values have to look like. Each is Invalid with a sentence that begins with the value.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "daemon/config/model.hpp"

namespace spark::config {

// A word of the file, in quotes, as errors show it.
std::string quote(std::string_view word);

// An IPv4 or IPv6 address (without brackets, zone allowed) or a host name.
Result<std::string> parse_address(std::string_view text);
// ADDR, ADDR:PORT, [V6] or [V6]:PORT.
Result<nvmetcp::Portal> parse_portal(std::string_view text, std::uint16_t default_port);
// What to listen on: IP:PORT or [V6]:PORT, with both given.
Result<nvmetcp::Portal> parse_listen(std::string_view text);

// Any bare name that the kernel's option list can carry: 1 to 223 bytes, no comma.
Result<std::string> parse_nqn(std::string_view text);
Result<std::string> parse_uuid(std::string_view text);
Result<NfsSource> parse_nfs(std::string_view text);
Result<std::string> parse_interface(std::string_view text);
Result<std::string> parse_environment_variable(std::string_view text);
// Of Kubernetes: 1 to 63 lower-case letters, digits and `-`, a letter or digit first and last.
Result<std::string> parse_pod_namespace(std::string_view text);
// A size, or a part as in "5%".
Result<Amount> parse_amount(std::string_view text);
std::string to_string(const Amount& amount);

// Absolute, and as the kernel would write it: no `.`, `..`, `//` or `/` at the end.
Result<std::filesystem::path> parse_absolute_path(std::string_view text);
// A folder below a volume, made normal: no `..`, not absolute; "." is the volume itself.
Result<std::string> parse_relative_path(std::string_view text);
// Equal to `folder` or below it; both normal.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

// One mount option of the user's; refused when it would contradict the access mode, reach for another device
// or mean something to fstab only.
Result<std::string> parse_mount_option(std::string_view text, Access access, bool is_nfs);

}  // namespace spark::config
