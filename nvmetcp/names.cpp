#include "nvmetcp/names.hpp"

#include <algorithm>

namespace spark::nvmetcp {
namespace {

// Takes `prefix` and at least one digit off the front of `rest`.
std::optional<std::string> take_numbered(std::string_view& rest, std::string_view prefix) {
  if (!rest.starts_with(prefix)) return std::nullopt;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto* const digits_end = std::find_if_not(rest.begin() + prefix.size(), rest.end(), is_digit);
  const auto length = static_cast<std::size_t>(digits_end - rest.begin());
  if (length == prefix.size()) return std::nullopt;
  std::string taken(rest.substr(0, length));
  rest.remove_prefix(length);
  return taken;
}

}  // namespace

bool is_controller_name(std::string_view name) {
  return take_numbered(name, "nvme") && name.empty();
}

std::optional<NamespaceName> parse_namespace_name(std::string_view name) {
  auto subsystem = take_numbered(name, "nvme");
  if (!subsystem) return std::nullopt;
  (void)take_numbered(name, "c");
  auto head = take_numbered(name, "n");
  if (!head || !name.empty()) return std::nullopt;
  return NamespaceName{std::move(*subsystem), std::move(*head)};
}

}  // namespace spark::nvmetcp
