#include "cli/join/fleet_text.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/values.hpp"

namespace spark::cli {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string to_text(const nvmetcp::Portal& address, std::uint16_t usual_port) {
  const bool is_v6 = address.address.find(':') != std::string::npos;
  if (address.port == usual_port && !is_v6) return address.address;
  if (address.port == usual_port) return "'" + address.address + "'";  // YAML ends a word at ": "
  return (is_v6 ? "'" : "") + to_string(address) + (is_v6 ? "'" : "");
}

std::string entry_of(const FleetHere::Peer& peer, std::uint16_t usual_port) {
  return peer.name + ": [" + to_text(peer.address, usual_port) + "]";
}

std::string entries_of(const std::vector<FleetHere::Peer>& peers, std::uint16_t usual_port,
                       const std::string& indent) {
  std::string all;
  for (const FleetHere::Peer& peer : peers) all += indent + entry_of(peer, usual_port) + "\n";
  return all;
}

std::string section_of(const FleetHere& fleet) {
  const bool is_v6 = fleet.listen.address.find(':') != std::string::npos;
  const std::string quote = is_v6 ? "'" : "";
  return "fleet:\n  listen: " + quote + to_string(fleet.listen) + quote +
         "\n  key_file: " + config::yaml_word(fleet.key_file.native()) + "\n  peers:" +
         (fleet.peers.empty() ? " {}\n" : "\n" + entries_of(fleet.peers, fleet.listen.port, "    "));
}

std::size_t indent_of(std::string_view line) {
  const std::size_t at = line.find_first_not_of(kBlanks);
  return at == std::string_view::npos ? std::string_view::npos : at;
}

bool is_empty(std::string_view line) {
  const std::size_t at = indent_of(line);
  return at == std::string_view::npos || line[at] == '#';
}

// The lines of a text, each with its end.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

// The line `peers:` of the section; none if the section is not written with a line for each key.
std::optional<std::size_t> line_of_peers(const std::vector<std::string>& lines) {
  bool is_inside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_empty(trim(lines[i]))) continue;
    const std::size_t indent = indent_of(lines[i]);
    if (indent == 0) is_inside = lines[i].starts_with("fleet:");
    if (is_inside && indent > 0 && trim(lines[i]).starts_with("peers:")) return i;
  }
  return std::nullopt;
}

std::string without_comment(std::string_view line) {
  return std::string(trim(line.substr(0, line.find(" #"))));
}

// Adds to a list in one line, or as further lines. The caller parses the result, and so checks it.
void add_peers(std::vector<std::string>& lines, std::size_t at, const std::vector<FleetHere::Peer>& peers,
               std::uint16_t usual_port) {
  std::string& line = lines[at];
  const std::string words = without_comment(line);
  const std::string indent(indent_of(line), ' ');
  if (words == "peers:" || words == "peers: {}") {
    const std::size_t braces = line.find(" {}");
    if (words != "peers:") line.erase(braces, 3);
    std::string inner = indent + "  ";
    for (std::size_t next = at + 1; next < lines.size() && words == "peers:"; ++next) {
      if (is_empty(trim(lines[next]))) continue;
      if (indent_of(lines[next]) > indent.size()) inner = std::string(indent_of(lines[next]), ' ');
      break;
    }
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at) + 1, entries_of(peers, usual_port, inner));
    return;
  }
  const std::size_t end = line.rfind('}', line.find(" #"));
  if (end == std::string::npos) return;
  std::string more;
  for (const FleetHere::Peer& peer : peers) more += ", " + entry_of(peer, usual_port);
  line.insert(end, more);
}

bool is_there(const config::FleetSettings& settings, const FleetHere::Peer& peer) {
  return find_peer(peers_of(settings), peer.address) != nullptr;
}

// What would have to be changed, and not added.
Result<> check_same(const config::FleetSettings& there, const FleetHere& fleet) {
  const std::string hint = "change the section by hand, or give what it says";
  if (std::ranges::find(there.listen, fleet.listen) == there.listen.end())
    return fail(Errc::Refused,
                "fleet.listen is " + to_string(there.listen.front()) + ", not " + to_string(fleet.listen),
                hint);
  if (there.key_file != fleet.key_file)
    return fail(Errc::Refused,
                "fleet.key_file is " + printable(there.key_file.native()) + ", not " +
                    printable(fleet.key_file.native()),
                hint);
  for (const FleetHere::Peer& peer : fleet.peers)
    if (const auto named = there.peers.find(peer.name); named != there.peers.end() && !is_there(there, peer))
      return fail(Errc::Refused,
                  "fleet.peers." + peer.name + " has the address " + to_string(named->second.front()) +
                      ", not " + to_string(peer.address),
                  hint);
  return {};
}

}  // namespace

std::vector<FleetHere::Peer> peers_of(const config::FleetSettings& settings) {
  std::vector<FleetHere::Peer> all;
  for (const auto& [name, addresses] : settings.peers)
    for (const nvmetcp::Portal& address : addresses) all.push_back({name, address});
  return all;
}

const FleetHere::Peer* find_peer(const std::vector<FleetHere::Peer>& peers, const nvmetcp::Portal& address,
                                 const std::string& name) {
  const FleetHere::Peer* found = nullptr;
  for (const FleetHere::Peer& peer : peers) {
    const bool is_it =
        peer.address.address == address.address && (address.port == 0 || address.port == peer.address.port);
    if (is_it && (found == nullptr || (peer.name == name && found->name != name))) found = &peer;
  }
  return found;
}

bool is_without_settings(const std::string& yaml) {
  return std::ranges::all_of(lines_of(yaml), [](const std::string& line) { return is_empty(trim(line)); });
}

Result<std::string> with_fleet(const std::string& yaml, const std::string& file_name,
                               const FleetHere& fleet) {
  std::string text = yaml;
  if (is_without_settings(text))
    text += (text.empty() || text.ends_with('\n') ? "" : "\n") + std::string("version: 1\n");
  const auto before = config::parse(text, file_name);
  if (!before) return before.take_error();
  config::Config wanted = *before;
  std::vector<FleetHere::Peer> missing;
  const bool has_section = !before->fleet.listen.empty();
  if (has_section)
    if (auto same = check_same(before->fleet, fleet); !same) return same.take_error();
  for (const FleetHere::Peer& peer : fleet.peers) {
    if (is_there(wanted.fleet, peer)) continue;
    missing.push_back(peer);
    wanted.fleet.peers[peer.name].push_back(peer.address);
  }
  if (has_section && missing.empty()) return yaml;
  if (!has_section) {
    wanted.fleet.listen = {fleet.listen};
    wanted.fleet.key_file = fleet.key_file;
    text += (text.ends_with('\n') ? "\n" : "\n\n") + section_of({fleet.listen, fleet.key_file, missing});
  } else {
    auto lines = lines_of(text);
    if (const auto at = line_of_peers(lines))
      add_peers(lines, *at, missing, before->fleet.listen.front().port);
    text = join(lines, "");
  }
  const auto after = config::parse(text, file_name);
  if (after && *after == wanted) return text;
  const std::string by_hand =
      has_section
          ? "fleet.peers: " + std::string(trim(entries_of(missing, before->fleet.listen.front().port, " ")))
          : section_of(fleet);
  return fail(Errc::Refused, printable(file_name) + " is written in a way that can't be added to",
              "write into it: " + by_hand);
}

}  // namespace spark::cli
