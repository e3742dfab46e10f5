#include "fleet/protocol/request.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {
namespace {

constexpr std::string_view kStart = "/fleet/v1/";

struct WalkPart {
  PeerRequest::Kind kind;
  std::string_view name;
};
constexpr WalkPart kWalkParts[] = {{PeerRequest::Kind::WalkEntries, "entries"},
                                   {PeerRequest::Kind::WalkNotes, "notes"},
                                   {PeerRequest::Kind::WalkFolders, "folders"}};

bool read_query(std::string_view query, PeerRequest& request) {
  constexpr std::string_view kFrom = "from=";
  const auto from = query.starts_with(kFrom) ? parse_node(query.substr(kFrom.size())) : std::nullopt;
  request.from = from.value_or(0);
  return request.from != 0;
}

// "link", "link/send/BYTES", "link/take/BYTES"
std::optional<PeerRequest> parse_link(const std::vector<std::string>& parts) {
  PeerRequest request;
  request.kind = PeerRequest::Kind::Link;
  if (parts.size() == 1) return request;
  const bool is_send = parts[1] == "send";
  const auto bytes = parts.size() == 3 ? parse_number<std::uint64_t>(parts[2]) : std::nullopt;
  if (!bytes || *bytes == 0 || *bytes > kMostLinkBytes || (!is_send && parts[1] != "take"))
    return std::nullopt;
  request.kind = is_send ? PeerRequest::Kind::LinkSend : PeerRequest::Kind::LinkTake;
  request.bytes = *bytes;
  return request;
}

// "copies/HASH/entries"
std::optional<PeerRequest> parse_copy(const std::vector<std::string>& parts) {
  if (parts.size() != 3 || !is_content_hash(parts[1]) || parts[2] != "entries") return std::nullopt;
  PeerRequest request;
  request.kind = PeerRequest::Kind::CopyEntries;
  request.set = parts[1];
  return request;
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
  if (parts[0] == "link" && question == std::string_view::npos) return parse_link(parts);
  if (parts[0] == "copies" && question == std::string_view::npos) return parse_copy(parts);
  const bool is_walk = parts[0] == "walks";
  if (parts.size() < 2 || (parts[0] != "sets" && !is_walk) || !is_set_id(parts[1])) return std::nullopt;
  request.set = parts[1];
  request.kind = is_walk ? PeerRequest::Kind::Walk : PeerRequest::Kind::Set;
  if (parts.size() == 2) return request;
  if (is_walk) {
    const auto part = std::ranges::find(kWalkParts, parts[2], &WalkPart::name);
    if (parts.size() != 3 || request.from != 0 || part == std::end(kWalkParts)) return std::nullopt;
    request.kind = part->kind;
    return request;
  }
  const auto unit =
      parts.size() == 4 && parts[2] == "units" ? parse_number<std::uint64_t>(parts[3]) : std::nullopt;
  if (!unit || request.from != 0) return std::nullopt;
  request.kind = PeerRequest::Kind::Unit;
  request.unit = *unit;
  return request;
}

std::string to_target(const PeerRequest& request) {
  std::string target(kStart);
  if (request.kind == PeerRequest::Kind::Node) return target + "node";
  if (request.kind == PeerRequest::Kind::Datasets) return target + "datasets";
  if (request.kind == PeerRequest::Kind::Link) return target + "link";
  if (request.kind == PeerRequest::Kind::CopyEntries) return target + "copies/" + request.set + "/entries";
  if (request.bytes != 0)
    return target + (request.kind == PeerRequest::Kind::LinkSend ? "link/send/" : "link/take/") +
           std::to_string(request.bytes);
  const bool is_set = request.kind == PeerRequest::Kind::Set || request.kind == PeerRequest::Kind::Unit;
  target += (is_set ? "sets/" : "walks/") + request.set;
  for (const WalkPart& part : kWalkParts)
    if (part.kind == request.kind) target += "/" + std::string(part.name);
  if (request.kind == PeerRequest::Kind::Unit) target += "/units/" + std::to_string(request.unit);
  if (request.from != 0) target += "?from=" + node_text(request.from);
  return target;
}

std::string node_text(NodeId node) {
  return staging::to_hex({node, 0}).substr(0, 16);
}

std::optional<NodeId> parse_node(std::string_view text) {
  return text.size() == 16 ? parse_number<NodeId>(text, 16) : std::nullopt;
}

}  // namespace spark::fleet
