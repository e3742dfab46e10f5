#include "fleet/protocol/request.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {
namespace {

constexpr std::string_view kStart = "/fleet/v1/";

// The path of each kind, with fields of the request in capitals.
struct Form {
  PeerRequest::Kind kind;
  std::string_view path;
};
constexpr Form kForms[] = {{PeerRequest::Kind::Node, "node"},
                           {PeerRequest::Kind::Datasets, "datasets"},
                           {PeerRequest::Kind::Set, "sets/ID"},
                           {PeerRequest::Kind::Unit, "sets/ID/units/N"},
                           {PeerRequest::Kind::Walk, "walks/ID"},
                           {PeerRequest::Kind::WalkEntries, "walks/ID/entries"},
                           {PeerRequest::Kind::WalkNotes, "walks/ID/notes"},
                           {PeerRequest::Kind::WalkFolders, "walks/ID/folders"},
                           {PeerRequest::Kind::CopyEntries, "copies/HASH/entries"},
                           {PeerRequest::Kind::Link, "link"},
                           {PeerRequest::Kind::LinkSend, "link/send/BYTES"},
                           {PeerRequest::Kind::LinkTake, "link/take/BYTES"}};

bool read_query(std::string_view query, PeerRequest& request) {
  constexpr std::string_view kFrom = "from=";
  const auto from = query.starts_with(kFrom) ? parse_node(query.substr(kFrom.size())) : std::nullopt;
  request.from = from.value_or(0);
  return request.from != 0;
}

// Reads the field that `word` of a form names. False: the part is not a value of that field.
bool read_part(std::string_view word, const std::string& part, PeerRequest& request) {
  if (word == "ID" || word == "HASH") {
    request.set = part;
    return word == "ID" ? is_set_id(part) : is_content_hash(part);
  }
  if (word != "N" && word != "BYTES") return part == word;
  const auto number = parse_number<std::uint64_t>(part);
  (word == "N" ? request.unit : request.bytes) = number.value_or(0);
  return number && (word == "N" || (*number > 0 && *number <= kMostLinkBytes));
}

std::optional<PeerRequest> read_as(const Form& form, const std::vector<std::string>& parts) {
  const auto words = split(form.path, '/');
  PeerRequest request;
  request.kind = form.kind;
  bool fits = words.size() == parts.size();
  for (std::size_t i = 0; fits && i < parts.size(); ++i) fits = read_part(words[i], parts[i], request);
  return fits ? std::optional(std::move(request)) : std::nullopt;
}

}  // namespace

std::optional<PeerRequest> parse_target(std::string_view target) {
  if (!target.starts_with(kStart)) return std::nullopt;
  target.remove_prefix(kStart.size());
  const std::size_t question = target.find('?');
  const auto parts = split(target.substr(0, question), '/');
  for (const Form& form : kForms) {
    auto request = read_as(form, parts);
    if (!request) continue;
    if (question == std::string_view::npos) return request;
    const bool has_query = form.kind == PeerRequest::Kind::Set || form.kind == PeerRequest::Kind::Walk;
    return has_query && read_query(target.substr(question + 1), *request) ? request : std::nullopt;
  }
  return std::nullopt;
}

std::string to_target(const PeerRequest& request) {
  const Form& form = *std::ranges::find(kForms, request.kind, &Form::kind);
  std::vector<std::string> parts;
  for (const std::string& word : split(form.path, '/'))
    parts.push_back(word == "ID" || word == "HASH" ? request.set
                    : word == "N"                  ? std::to_string(request.unit)
                    : word == "BYTES"              ? std::to_string(request.bytes)
                                                   : word);
  const std::string query = request.from == 0 ? "" : "?from=" + node_text(request.from);
  return std::string(kStart) + join(parts, "/") + query;
}

std::string node_text(NodeId node) {
  return staging::to_hex({node, 0}).substr(0, 16);
}

std::optional<NodeId> parse_node(std::string_view text) {
  return text.size() == 16 ? parse_number<NodeId>(text, 16) : std::nullopt;
}

}  // namespace spark::fleet
