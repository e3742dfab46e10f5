// Formats of single values. Each failure is Invalid with a sentence that begins with the value.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "daemon/config/model.hpp"

namespace spark::config {

// A word of the file, quoted for messages.
std::string quote(std::string_view word);

// An IPv4 or IPv6 address (without brackets, zone allowed) or a host name.
Result<std::string> parse_address(std::string_view text);
// ADDR, ADDR:PORT, [V6] or [V6]:PORT.
Result<nvmetcp::Portal> parse_portal(std::string_view text, std::uint16_t default_port);
// An address to listen on: IP:PORT or [V6]:PORT, both parts required.
Result<nvmetcp::Portal> parse_listen(std::string_view text);

// Any bare name that fits the kernel's option list: 1 to 223 bytes, no comma.
Result<std::string> parse_nqn(std::string_view text);
Result<std::string> parse_uuid(std::string_view text);
Result<NfsSource> parse_nfs(std::string_view text);
Result<std::string> parse_interface(std::string_view text);
Result<std::string> parse_environment_variable(std::string_view text);
// A Kubernetes namespace: 1 to 63 lower-case letters, digits and `-`; the first and the last are a letter or
// digit.
Result<std::string> parse_pod_namespace(std::string_view text);
// ORG/NAME, or NAME:TAG, as Hugging Face, ModelScope and ollama write a model's name.
Result<std::string> parse_model_name(std::string_view text);
// A ref (a branch, a tag, "refs/pr/1") or a commit.
Result<std::string> parse_model_revision(std::string_view text);
// "sha256:" and 64 hexadecimal digits.
Result<std::string> parse_pin(std::string_view text);
// Refuses a number from 1 to 100 alone, where a percentage is possible as well: the '%' was forgotten.
Result<> check_has_unit(std::string_view text);
// A size, or a percentage such as "5%".
Result<Amount> parse_amount(std::string_view text);
std::string to_string(const Amount& amount);

// Absolute, and in the kernel's form: no `.`, `..`, `//` or trailing `/`.
Result<std::filesystem::path> parse_absolute_path(std::string_view text);
// A folder below a volume, normalized: no `..`, not absolute; "." is the volume itself.
Result<std::string> parse_relative_path(std::string_view text);
// Equal to `folder` or below it; both normalized.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

// One mount option of the user; refused if it contradicts the access mode, accesses another device or is only
// meaningful in fstab.
Result<std::string> parse_mount_option(std::string_view text, Access access, bool is_nfs);

}  // namespace spark::config
