#include "fleet/protocol/request.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {
namespace {

constexpr std::string_view kStart = "/fleet/v1/";
constexpr std::size_t kLongestOrigin = 100;

bool is_origin(std::string_view text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
  return text.size() <= kLongestOrigin && text.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool read_query(std::string_view query, PeerRequest& request) {
  for (const std::string& part : split(query, '&')) {
    if (part.starts_with("origin=") && is_origin(std::string_view(part).substr(7))) {
      request.origin = part.substr(7);
    } else if (part.starts_with("from=")) {
      const auto from = parse_node(std::string_view(part).substr(5));
      if (!from) return false;
      request.from = *from;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<PeerRequest> parse_target(std::string_view target) {
  if (!target.starts_with(kStart)) return std::nullopt;
  target.remove_prefix(kStart.size());
  PeerRequest request;
  const std::size_t question = target.find('?');
  if (question != std::string_view::npos && !read_query(target.substr(question + 1), request))
    return std::nullopt;
  const auto parts = split(target.substr(0, question), '/');
  const bool is_single = parts.size() == 1 && question == std::string_view::npos;
  if (is_single && parts[0] == "node") return request;
  if (is_single && parts[0] == "datasets") {
    request.kind = PeerRequest::Kind::Datasets;
    return request;
  }
  if (parts.size() < 2 || parts[0] != "sets" || !is_set_id(parts[1])) return std::nullopt;
  request.set = parts[1];
  request.kind = PeerRequest::Kind::Set;
  if (parts.size() == 2) return request;
  const auto unit = parts.size() == 4 && parts[2] == "units" ? parse_number(parts[3], 10) : std::nullopt;
  if (!unit || request.from != 0) return std::nullopt;
  request.kind = PeerRequest::Kind::Unit;
  request.unit = *unit;
  return request;
}

std::string to_target(const PeerRequest& request) {
  std::string target(kStart);
  if (request.kind == PeerRequest::Kind::Node) return target + "node";
  if (request.kind == PeerRequest::Kind::Datasets) return target + "datasets";
  target += "sets/" + request.set;
  if (request.kind == PeerRequest::Kind::Unit) target += "/units/" + std::to_string(request.unit);
  char separator = '?';
  const auto add = [&](const std::string& part) { target += std::exchange(separator, '&') + part; };
  if (request.from != 0) add("from=" + node_text(request.from));
  if (!request.origin.empty()) add("origin=" + request.origin);
  return target;
}

std::string node_text(NodeId node) {
  return staging::to_hex({node, 0}).substr(0, 16);
}

std::optional<NodeId> parse_node(std::string_view text) {
  return text.size() == 16 ? parse_number(text, 16) : std::nullopt;
}

}  // namespace spark::fleet
